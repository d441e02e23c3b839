package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// history is a repository whose two commits change files in every way.
func history(t *testing.T) gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	r.Write("folder/in/file", "a file below\n")
	r.Write("file", "a file\n")
	r.Write("plain", "p\n")
	r.Link("plain", "link")
	r.Seed()
	r.Git("tag", "first")
	r.Remove("folder", "file", "gone", "link", "src/main.go")
	r.Write("folder", "now a file\n")
	r.Write("file/deep/er", "now a folder\n")
	r.Write("link", "now a file\n")
	r.Link("nowhere", "src/main.go")
	r.Chmod("plain", 0o755)
	r.Write("README", "new\n")
	r.Commit("second")
	r.Git("tag", "second")
	return r
}

func TestCheckOutThereAndBack(t *testing.T) {
	c := open(t, history(t))
	second := c.Files()
	c.Write("src/mine", "untracked\n")
	stats, err := c.work.CheckOut(t.Context(), c.id("first^{tree}"), c.differences("second", "first"))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Files()
	delete(got, "src/mine")
	c.Remove("src/mine")
	c.Git("stash", "-q", "-u")
	c.Git("checkout", "-q", "first")
	gittest.Same(t, "first", c.Files(), got)
	if _, written := stats["README"]; !written {
		t.Errorf("no stat data of README in %v", stats)
	}
	c.Write("src/mine", "untracked\n")
	if _, err := c.work.CheckOut(t.Context(), c.id("second^{tree}"), c.differences("first", "second")); err != nil {
		t.Fatal(err)
	}
	second["src/mine"] = "untracked\n"
	gittest.Same(t, "second", second, c.Files())
}

func TestCheckOutOverLosesNothing(t *testing.T) {
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	ix := c.index()
	c.Git("rm", "-q", "--cached", "file")
	c.Write("other", "untracked\n")
	before := c.Files()
	c.Git("checkout", "-q", "second", "--", ".")
	c.Git("reset", "-q", "--hard", "first")
	additions := slices.DeleteFunc(c.differences("first", "second"), func(d objects.Difference) bool { return d.Old.Mode != 0 })
	c.Remove("folder")
	c.Write("file", "changed\n")
	if _, err := c.work.CheckOutOver(t.Context(), ix, c.id("first^{tree}"), c.id("second^{tree}"), additions); !errors.As(err, new(*worktree.ChangedError)) {
		t.Errorf("over a file in the place of a folder: %v", err)
	}
	gittest.Same(t, "file", "changed\n", c.Read("file"))
	gittest.Same(t, "other", before["other"], c.Read("other"))

	fresh := open(t, history(t))
	fresh.Git("checkout", "-q", "first")
	fresh.Write("new", "mine\n")
	from := fresh.Git("rev-parse", "first^{tree}")
	id := fresh.GitWith(nil, []byte("theirs\n"), "hash-object", "-w", "--stdin")
	add := []objects.Difference{{Path: "new", New: objects.Entry{Mode: index.Regular, ID: fresh.id(id)}}}
	var obstructed *worktree.ObstructedError
	if _, err := fresh.work.CheckOutOver(t.Context(), fresh.index(), fresh.id(from), fresh.id(from), add); !errors.As(err, &obstructed) {
		t.Errorf("over an untracked file: %v", err)
	} else {
		gittest.Same(t, "in the way", []string{"new"}, obstructed.Paths)
	}
	gittest.Same(t, "new", "mine\n", fresh.Read("new"))
}

// What is in the way is found before anything is written.
func TestCheckOutOverTouchesNothingWhereSomethingIsInTheWay(t *testing.T) {
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	c.Write("folder/mine", "untracked\n")
	c.Write("mine", "untracked\n")
	before := c.Files()
	id := c.id(c.GitWith(nil, []byte("theirs\n"), "hash-object", "-w", "--stdin"))
	for place, obstacle := range map[string]string{"folder": "folder/mine", "mine/below/it": "mine"} {
		add := []objects.Difference{{Path: "aaa", New: objects.Entry{Mode: index.Regular, ID: id}}, {Path: place, New: objects.Entry{Mode: index.Regular, ID: id}}}
		_, err := c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("first^{tree}"), add)
		if obstructed := (*worktree.ObstructedError)(nil); !errors.As(err, &obstructed) {
			t.Errorf("%s: %v", place, err)
		} else {
			gittest.Same(t, "in the way", []string{obstacle}, obstructed.Paths)
		}
		gittest.Same(t, "files", before, c.Files())
	}
}

// What somebody writes before a file is replaced, or while others are, is kept.
func TestCheckOutOverKeepsWhatOthersWrite(t *testing.T) {
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	changes := slices.DeleteFunc(c.differences("first", "second"), func(d objects.Difference) bool { return d.Path != "README" && d.Path != "gone" })
	c.Write("gone", "mine\n")
	before := c.Files()
	var changed *worktree.ChangedError
	if _, err := c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("second^{tree}"), changes); !errors.As(err, &changed) || changed.Begun {
		t.Errorf("a file that was written before: %v", err)
	}
	gittest.Same(t, "files", before, c.Files())

	stats := map[string]index.Stat{}
	for _, path := range []string{"README", "gone"} {
		info, err := os.Lstat(c.Path(path))
		if err != nil {
			t.Fatal(err)
		}
		stats[path] = index.StatOf(info)
	}
	c.Write("README", "mine, too\n")
	err := c.work.CheckOutKnown(t.Context(), c.id("second^{tree}"), changes, stats)
	if changed = nil; !errors.As(err, &changed) || !changed.Begun {
		t.Errorf("a file that was written meanwhile: %v", err)
	} else {
		gittest.Same(t, "changed", []string{"README"}, changed.Paths)
	}
	gittest.Same(t, "README", "mine, too\n", c.Read("README"))
	if _, err := os.Lstat(c.Path(".git/agent-ci-aside")); err == nil {
		t.Error("it lies aside still")
	}

	c.Git("checkout", "-q", "--", ".")
	c.Write(".git/agent-ci-aside", "mine\n")
	_, err = c.work.CheckOutOver(t.Context(), c.index(), c.id("first^{tree}"), c.id("second^{tree}"), changes)
	if aside := new(worktree.AsideError); !errors.As(err, &aside) || !errors.As(c.work.DropAside(nil), &aside) {
		t.Errorf("over what somebody wrote and a process that died set aside: %v", err)
	}
	gittest.Same(t, "what lies aside", "mine\n", c.Read(".git/agent-ci-aside"))
	id := c.id(c.GitWith(nil, []byte("mine\n"), "hash-object", "--stdin"))
	if err := c.work.DropAside([]plumbing.Hash{id}); err != nil {
		t.Errorf("what it found there: %v", err)
	}
}

// The stat data of a file is that of when it was written, so that git finds what others
// write while the rest is.
func TestCheckOutNotesFilesAsItWritesThem(t *testing.T) {
	r := history(t)
	r.Git("checkout", "-q", "first")
	r.Write(".git/info/attributes", "plain ident\n") // git writes it, after all others
	busy := filepath.Join(t.TempDir(), "git")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' checkout-index '*) echo mine >>%s;; esac\nexec %s \"$@\"\n", r.Path("README"), gittest.Program(t))
	if err := os.WriteFile(busy, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := openWith(t, r, busy)
	changes := c.differences("first", "second")
	stats, err := c.work.CheckOut(t.Context(), c.id("second^{tree}"), changes)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "README", "new\nmine\n", c.Read("README"))
	if got := stats["README"].Size; got != uint32(len("new\n")) {
		t.Errorf("noted is a size of %d", got)
	}
	for _, d := range changes {
		info, err := os.Lstat(c.Path(d.Path))
		if d.New.Mode != 0 && d.Path != "README" && (err != nil || stats[d.Path] != index.StatOf(info)) {
			t.Errorf("%s: noted %+v, %v", d.Path, stats[d.Path], err)
		}
	}
}

// Nothing is written or removed through a link in the place of a folder.
func TestCheckOutGoesThroughNoLink(t *testing.T) {
	aside := gittest.New(t)
	aside.Write("deep/er/x", "mine\n")
	c := open(t, history(t))
	c.Git("checkout", "-q", "first")
	c.Remove("src")
	c.Link(aside.Dir, "src")
	back := slices.DeleteFunc(c.differences("", "first"), func(d objects.Difference) bool { return d.Path != "src/deep/er/x" })
	if _, err := c.work.CheckOut(t.Context(), c.id("first^{tree}"), back); !errors.As(err, new(*worktree.ObstructedError)) {
		t.Errorf("to write: %v", err)
	}
	remove := []objects.Difference{{Path: "src/deep/er/x", Old: back[0].New}}
	if _, err := c.work.CheckOut(t.Context(), c.id("first^{tree}"), remove); err != nil {
		t.Errorf("to remove: %v", err)
	}
	gittest.Same(t, "aside", map[string]string{"deep/er/x": "mine\n"}, aside.Files())
}

// Of a tree with a damaged file nothing is written, and nothing makes room for it.
func TestCheckOutOfDamagedFilesTouchesNothing(t *testing.T) {
	c := open(t, history(t))
	before := c.Files()
	changes := c.differences("second", "first")
	id := c.Git("rev-parse", "first:README")
	c.Remove(".git/objects/" + id[:2] + "/" + id[2:])
	if _, err := open(t, c.Repo).work.CheckOut(t.Context(), c.id("first^{tree}"), changes); !errors.As(err, new(*objects.DamagedError)) {
		t.Errorf("got %v", err)
	}
	gittest.Same(t, "files", before, c.Files())
}

func TestFillAsGitDoes(t *testing.T) {
	r := gittest.New(t)
	r.Write(".gitattributes", "*.dos eol=crlf\n*.caps filter=caps\n")
	r.Write("a.dos", "a\nb\n")
	r.Write("sub/.gitattributes", "*.dos -text\n")
	r.Write("sub/b.dos", "a\nb\n")
	r.Link("a.dos", "link")
	r.Seed()
	r.Chmod("gone", 0o755)
	r.Commit("more")
	c := open(t, r)
	fresh := gittest.Repo{T: t, Dir: filepath.Join(t.TempDir(), "fresh")}
	gitDir := fresh.Path(".git")
	if err := os.MkdirAll(gitDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := c.repo.FillGitDir(repository.TreeFolder{Dir: gitDir, SeenAt: gitDir}); err != nil {
		t.Fatal(err)
	}
	fresh.Write(".git/objects/info/alternates", r.Path(".git/objects")+"\n")
	root, err := os.OpenRoot(fresh.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := c.work.Fill(t.Context(), root, c.id("HEAD^{tree}")); err != nil {
		t.Fatal(err)
	}
	want := r.Files()
	want["a.dos"] = "a\r\nb\r\n"
	gittest.Same(t, "files", want, fresh.Files())
	gittest.Same(t, "staged", r.Git("rev-parse", "HEAD^{tree}"), fresh.Git("write-tree"))
	gittest.Same(t, "status", "", fresh.Git("diff-files", "--name-only"))
}

func TestCompareIndexAsGitDiff(t *testing.T) {
	c := open(t, history(t))
	c.Git("rm", "-q", "-r", "--cached", "src")
	c.Write("new/staged", "n\n")
	c.Write("README", "staged\n")
	c.Git("add", "new", "README")
	c.Write("new/intended", "i\n")
	c.Git("add", "-N", "new/intended")
	for _, commit := range []string{"first", "second"} {
		var got []string
		err := c.work.CompareIndex(t.Context(), c.index(), c.id(commit+"^{tree}"), func(path string, _ objects.Entry) { got = append(got, path) })
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		want := append(gitLines(c.Git("diff", "--cached", "--no-renames", "--name-only", commit)), "new/intended")
		slices.Sort(want)
		gittest.Same(t, commit, slices.Compact(want), got)
	}
}
