package worktree_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// hugeSize is that of a file which takes no room and no end to read.
const hugeSize = 15 << 40

func TestReadsNoTooLargeFile(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	c := open(t, r)
	r.Sparse("new", hugeSize)
	r.Sparse("README", hugeSize)
	r.Write("small", "s\n")
	gittest.Same(t, "found", []string{"changed small", "too large README", "too large new", "untracked new", "untracked small"},
		without(c.scan(worktree.WithUntracked), "alike gone", "alike src/main.go", "alike src/deep/er/x"))
}

func TestExcludesLargestFilesFirst(t *testing.T) {
	r := gittest.New(t)
	r.Commit("seed")
	c := open(t, r)
	r.Sparse("a", worktree.LargestChange-2)
	r.Sparse("b", worktree.LargestChange-1)
	r.Sparse("c", worktree.LargestChange)
	r.Write("d", "two")
	gittest.Same(t, "found", []string{
		"changed d", "too large a", "too large b", "too large c", "untracked a", "untracked b", "untracked c", "untracked d",
	}, c.scan(worktree.WithUntracked))
}

// fading ends after it was looked at so many times.
type fading struct {
	context.Context
	looks atomic.Int64
}

func (f *fading) Err() error {
	if f.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestLargeReadEndsWithContext(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	c := open(t, r)
	r.Sparse("large", worktree.LargestChange)
	ctx := &fading{Context: t.Context()}
	ctx.looks.Store(64)
	var s *worktree.Scan
	s = c.work.Scan(c.index(), worktree.WithUntracked, func(f worktree.Found) { s.Suspect(f) })
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Clean(ctx, true); err == nil {
		t.Error("it was read after the end of the context")
	}
	if looks := ctx.looks.Load(); looks < -64 {
		t.Errorf("looked at %d times after its end", -looks)
	}
}

// Whatever the attributes and settings ask for, what is stored is what git stores.
func TestStoresSameObjectsAsGit(t *testing.T) {
	const crlf, mixed, binary = "a\r\nb\r\n", "a\r\nb\n", "a\r\n\x00\r\n"
	for _, c := range []struct{ attributes, autocrlf, content string }{
		{"", "false", crlf},
		{"", "true", crlf},
		{"", "input", mixed},
		{"* -text", "true", crlf},
		{"* text", "false", crlf},
		{"* text=auto", "false", binary},
		{"* text=auto", "false", mixed},
		{"*.txt eol=crlf", "false", crlf},
		{"* binary", "true", crlf},
		{"* text working-tree-encoding=UTF-16LE", "false", "a\x00\r\x00\n\x00"},
		{"* ident", "false", "$Id: x $\n"},
		{"* filter=caps", "false", "abc\n"},
		{"* text filter=caps", "false", "abc\r\n"},
		{"* ident filter=caps", "false", "$Id: x $\n"},
		{"* text filter=caps working-tree-encoding=UTF-16LE", "false", "a\x00\r\x00\n\x00"},
		{"* filter=path", "false", "abc\n"},
		{"* filter=broken", "false", "abc\n"},
		{"* filter=other", "false", "abc\n"},
		{"* text=auto", "false", crlf},
		{"* text=auto ident", "false", "$Id: x $\r\n"},
		{"* crlf=input", "false", crlf},
		{"* -crlf", "true", crlf},
		{"* text=auto eol=crlf", "false", crlf},
		{"* -text eol=crlf", "false", crlf},
		{"* text=auto filter=caps", "input", "abc\r\n"},
		{"* working-tree-encoding=utf-8", "true", crlf},
		{"[attr]lines text=auto\n* lines", "false", crlf},
	} {
		r := gittest.New(t)
		r.Write("old.txt", "commit\r\n")
		r.Commit("with CRLF")
		r.Write(".gitattributes", c.attributes+"\n")
		r.Git("add", ".gitattributes")
		r.Git("commit", "-q", "-m", "seed")
		r.Git("config", "core.autocrlf", c.autocrlf)
		r.Git("config", "filter.caps.clean", "tr a-z A-Z")
		r.Git("config", "filter.path.clean", "cat; printf '%%s 100%%%%' %f")
		r.Git("config", "filter.broken.clean", "echo no; false")
		r.Git("config", "filter.other.smudge", "false")
		one := open(t, r)
		r.Write("old.txt", c.content)
		r.Write("file.txt", c.content)
		r.Write("new \"1\"\n\\.txt", c.content)
		got := map[string]string{}
		for _, path := range []string{"old.txt", "file.txt", "new \"1\"\n\\.txt"} {
			got[path] = one.stored(path)
		}
		r.Git("add", "-A")
		for path, text := range got {
			if want := r.GitWith(nil, nil, "cat-file", "blob", ":"+path); strings.TrimSuffix(text, "\n") != want {
				t.Errorf("%+v, %s: stored %q, by git %q", c, path, text, want)
			}
		}
	}
}

func TestReadsAttributesOfDeepFolders(t *testing.T) {
	r := gittest.New(t)
	r.Write("a/b/.gitattributes", "*.txt text\n")
	r.Seed()
	c := open(t, r)
	r.Write("a/b/c/new.txt", "crlf\r\n")
	r.Write("a/other.txt", "crlf\r\n")
	gittest.Same(t, "below the rules", "crlf\n", c.stored("a/b/c/new.txt"))
	gittest.Same(t, "beside", "crlf\r\n", c.stored("a/other.txt"))
}

// A file that the index has with CRLF keeps it where git only guesses.
func TestKeepsStoredCRLF(t *testing.T) {
	r := gittest.New(t)
	r.Write("old.txt", "a\r\n")
	r.Commit("seed")
	r.Git("config", "core.autocrlf", "input")
	c := open(t, r)
	r.Write("old.txt", "a\r\nb\r\n")
	r.Write("new.txt", "a\r\nb\r\n")
	gittest.Same(t, "old", "a\r\nb\r\n", c.stored("old.txt"))
	gittest.Same(t, "new", "a\nb\n", c.stored("new.txt"))
}

// Git can read no UTF-16 in an odd number of bytes.
func TestExcludesOnlyFileInWrongEncoding(t *testing.T) {
	r := gittest.New(t)
	r.Write(".gitattributes", "*.txt text working-tree-encoding=UTF-16LE\n")
	r.Commit("seed")
	c := open(t, r)
	r.Write("a.txt", "a\x00")
	r.Write("b.txt", "utf-8")
	r.Write("c.txt", "c\x00")
	gittest.Same(t, "found", []string{
		"changed a.txt", "changed c.txt", "left out b.txt", "untracked a.txt", "untracked b.txt", "untracked c.txt",
	}, without(c.scan(worktree.WithUntracked), "alike .gitattributes"))
}

func TestExcludesOnlyFileWithFailingFilter(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("config", "filter.broken.clean", "false")
	r.Git("config", "filter.broken.required", "true")
	c := open(t, r)
	r.Write(".gitattributes", "*.bin filter=broken\n")
	r.Write("a.bin", "x\n")
	r.Write("plain", "p\n")
	gittest.Same(t, "found", []string{
		"changed .gitattributes", "changed plain", "left out a.bin", "untracked .gitattributes", "untracked a.bin", "untracked plain",
	}, without(c.scan(worktree.WithUntracked), "alike README", "alike gone", "alike src/main.go", "alike src/deep/er/x"))
}
