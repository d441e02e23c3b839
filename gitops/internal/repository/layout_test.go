package repository_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

func TestALinkedWorkTree(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("worktree", "add", "-q", "../other")
	c := open(t, r.Path("../other"), "")
	gittest.Same(t, "git folder", r.Path(".git/worktrees/other"), c.GitDir)
	gittest.Same(t, "common folder", r.Path(".git"), c.CommonDir)
	gittest.Same(t, "objects", []string{r.Path(".git")}, c.Folders)
}

func TestLayoutAt(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("clone", "-q", "--bare", ".", "../bare.git")
	for path, want := range map[string]string{r.Dir: r.Path(".git"), r.Path(".git"): r.Path(".git"), r.Path("../bare.git"): r.Path("../bare.git")} {
		l, err := repository.LayoutAt(path)
		if err != nil || l.GitDir != want || l.CommonDir != want {
			t.Errorf("%s: %+v, %v", path, l, err)
		}
	}
	for _, path := range []string{t.TempDir(), r.Path("src"), r.Path("README")} {
		if _, err := repository.LayoutAt(path); !errors.Is(err, repository.ErrNotRepository) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestGitDirOfAFileThatLeadsNowhere(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	for name, content := range map[string]string{"empty": "", "text": "no pointer\n", "nowhere": "gitdir: /nowhere\n"} {
		r.Write(name+"/.git", content)
		if dir, ok := repository.GitDirOf(r.Path(name)); ok {
			t.Errorf("%s leads to %s", name, dir)
		}
	}
	r.Write("good/.git", "gitdir: ../.git\n")
	if dir, ok := repository.GitDirOf(r.Path("good")); !ok || dir != r.Path(".git") {
		t.Errorf("good leads to %s, %t", dir, ok)
	}
}

func TestObjectFolders(t *testing.T) {
	alternates := func(r gittest.Repo, text string) { r.Write(".git/objects/info/alternates", text) }
	first, second, third := gittest.New(t), gittest.New(t), gittest.New(t)
	alternates(first, "# a comment\n\n"+second.Path(".git/objects")+"\n/nowhere/objects\n"+third.Path(".git/objects")+"\n")
	relative, err := filepath.Rel(second.Path(".git/objects"), third.Path(".git/objects"))
	if err != nil {
		t.Fatal(err)
	}
	alternates(second, relative+"\n")
	alternates(third, first.Path(".git/objects")+"\n") // in a ring
	got, err := repository.ObjectFolders(first.Path(".git"))
	if err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "folders", []string{first.Path(".git"), second.Path(".git"), third.Path(".git")}, got)
	for _, line := range []string{`"quoted/objects"`, "/some/where/else"} {
		alternates(first, line+"\n")
		if _, err := repository.ObjectFolders(first.Path(".git")); !errors.As(err, new(*repository.UnsupportedError)) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestQuoteAlternateAsGitReadsIt(t *testing.T) {
	holder := gittest.New(t)
	holder.Seed()
	id := holder.Git("rev-parse", "HEAD")
	for _, name := range []string{"plain", "a:b", `a"b\c`, "a\nb"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Rename(holder.Dir, dir); err != nil {
			t.Fatal(err)
		}
		holder.Dir = dir
		list := "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + repository.QuoteAlternate(filepath.Join(dir, ".git/objects"))
		gittest.Same(t, name, "commit", gittest.New(t).GitWith([]string{list}, nil, "cat-file", "-t", id))
	}
}

func TestTheIndexIsReadOnceWhileItIsTheSame(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	c := open(t, r.Dir, gittest.Program(t))
	first, err := c.Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Index(t.Context()); err != nil || again != first {
		t.Errorf("it was read again: %v", err)
	}
	r.Write("new", "n\n")
	r.Git("add", "new")
	later, err := c.Index(t.Context())
	if err != nil || later.Len() != first.Len()+1 {
		t.Errorf("a new index is not seen: %v", err)
	}
	if err := c.WriteIndex(first, nil); err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "status", "?? new", r.Git("status", "--porcelain"))
}

func TestASplitIndex(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("update-index", "--split-index")
	r.Write("new", "n\n")
	r.Git("add", "new")
	ix, err := open(t, r.Dir, gittest.Program(t)).Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i := range ix.Len() {
		paths = append(paths, string(ix.Path(i)))
	}
	gittest.Same(t, "paths", []string{"README", "gone", "new", "src/deep/er/x", "src/main.go"}, slices.Sorted(slices.Values(paths)))
	if _, err := open(t, r.Dir, "").Index(t.Context()); !errors.As(err, new(*repository.UnsupportedError)) {
		t.Errorf("without git: %v", err)
	}
}
