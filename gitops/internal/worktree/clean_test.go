package worktree_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestReadsNoTooLargeFile(t *testing.T) {
	r := gittest.Seeded(t)
	c := open(t, r)
	r.Sparse("new", hugeSize)
	r.Sparse("README", hugeSize)
	r.Write("small", "s\n")
	must.Same(t, []string{"changed small", "too large README", "too large new", "untracked new", "untracked small"}, without(c.scan(untrackedToo), "alike gone", "alike src/main.go", "alike src/deep/er/x"), "found")
}

func TestExcludesLargestFilesFirst(t *testing.T) {
	r := gittest.New(t)
	r.Commit("seed")
	c := open(t, r)
	r.Sparse("a", worktree.LargestChange-2)
	r.Sparse("b", worktree.LargestChange-1)
	r.Sparse("c", worktree.LargestChange)
	r.Write("d", "two")
	must.Same(t, []string{
		"changed d", "too large a", "too large b", "too large c", "untracked a", "untracked b", "untracked c", "untracked d",
	}, c.scan(untrackedToo), "found")
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
	r := gittest.Seeded(t)
	c := open(t, r)
	r.Sparse("large", worktree.LargestChange)
	ctx := &fading{Context: t.Context()}
	ctx.looks.Store(64)
	var s *scan.Scan
	s = scan.New(c.work.ScanTree(), c.index(), func(f scan.Found) { s.Suspect(f) })
	must.Do(t, s.Run(ctx))
	must.Fail(t, "", c.work.StoreSuspects(ctx, s), "it was read after the end of the context")
	if looks := ctx.looks.Load(); looks < -64 {
		t.Errorf("looked at %d times after its end", -looks)
	}
}

// Whatever the attributes and settings ask for, what is stored is what git stores.
func TestStoresSameObjectsAsGit(t *testing.T) {
	const crlf, mixed, binary = "a\r\nb\r\n", "a\r\nb\n", "a\r\n\x00\r\n"
	r := gittest.New(t)
	r.Write("old.txt", "commit\r\n")
	r.Commit("with CRLF")
	for key, value := range map[string]string{
		"caps.clean": "tr a-z A-Z", "path.clean": "cat; printf '%%s 100%%%%' %f", "broken.clean": "echo no; false", "other.smudge": "false",
	} {
		r.Git("config", "filter."+key, value)
	}
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
		r.Write(".gitattributes", c.attributes+"\n")
		r.Git("add", ".gitattributes")
		r.Git("config", "core.autocrlf", c.autocrlf)
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
			must.Same(t, r.GitWith(nil, nil, "cat-file", "blob", ":"+path), strings.TrimSuffix(text, "\n"), c, path, text)
		}
		r.Git("reset", "-q", "--hard")
	}
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
	must.Same(t, []string{
		"changed a.txt", "changed c.txt", "left out b.txt", "untracked a.txt", "untracked b.txt", "untracked c.txt",
	}, without(c.scan(untrackedToo), "alike .gitattributes"), "found")
}
