package repository_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

// What git does not take for a repository is passed by, and a file that leads
// nowhere ends the search.
func TestFindsWorkTreesLikeGit(t *testing.T) {
	r := gittest.Seeded(t)
	id := r.Git("rev-parse", "HEAD")
	none := gittest.Repo{T: t, Dir: t.TempDir()}
	for _, below := range []gittest.Repo{r, none} {
		for name, write := range map[string]func(at string){
			"empty":   func(at string) { makeFolders(below, at) },
			"no HEAD": func(at string) { makeFolders(below, at+"/objects", at+"/refs") },
			"no refs": func(at string) {
				makeFolders(below, at+"/objects")
				below.Write(at+"/HEAD", "ref: refs/heads/main\n")
			},
			"words":    func(at string) { bareBones(below, at, "hello\n") },
			"outside":  func(at string) { bareBones(below, at, "ref: ../outside\n") },
			"a branch": func(at string) { bareBones(below, at, "ref:  refs/heads/none\n") },
			"a commit": func(at string) { bareBones(below, at, id+"\n") },
			"a link": func(at string) {
				bareBones(below, at, "")
				below.Remove(at + "/HEAD")
				below.Link("refs/heads/main", at+"/HEAD")
			},
			"a file":  func(at string) { below.Write(at, "gitdir: nowhere\n") },
			"nothing": func(at string) { makeFolders(below, filepath.Dir(at)) },
		} {
			write(name + "/.git")
			at := gittest.Repo{T: t, Dir: below.Path(name)}
			var want string
			if at.TryGit("rev-parse") == nil {
				want = at.Git("rev-parse", "--show-toplevel")
			}
			if root, ok := repository.WorkTree(at.Dir); root != want || ok != (want != "") {
				t.Errorf("%s in %s: found %q, git %q", name, below.Dir, root, want)
			}
		}
	}
}

// What lies above a ceiling is not looked at, as git has it.
func TestStopsAtCeilingDirectories(t *testing.T) {
	r := gittest.Seeded(t)
	makeFolders(r, "a/b")
	r.Link("a", "link")
	for ceiling, want := range map[string]bool{
		"": true, r.Dir: false, r.Path("a"): false, r.Path("a/b"): true, r.Path("link"): false, "/nowhere:" + r.Path("a") + "/": false, ":" + r.Path("link"): true,
	} {
		t.Setenv(gittest.Ceiling, ceiling)
		_, found := repository.WorkTree(r.Path("a/b"))
		must.Same(t, want, found, ceiling)
		must.Same(t, want, gittest.Repo{T: t, Dir: r.Path("a/b")}.TryGit("rev-parse") == nil, ceiling)
	}
}

// bareBones makes a git folder of as little as git asks for.
func bareBones(r gittest.Repo, at, head string) {
	makeFolders(r, at+"/objects", at+"/refs")
	r.Write(at+"/HEAD", head)
}

func makeFolders(r gittest.Repo, names ...string) {
	r.T.Helper()
	for _, name := range names {
		must.Do(r.T, os.MkdirAll(r.Path(name), 0o777))
	}
}

func TestObjectFolders(t *testing.T) {
	alternates := func(r gittest.Repo, text string) { r.Write(".git/objects/info/alternates", text) }
	first, second, third := gittest.New(t), gittest.New(t), gittest.New(t)
	alternates(first, "# a comment\n\n"+second.Path(".git/objects")+"\n/nowhere/objects\n"+third.Path(".git/objects")+"\n")
	relative := must.Get(filepath.Rel(second.Path(".git/objects"), third.Path(".git/objects")))(t)
	alternates(second, relative+"\n")
	alternates(third, first.Path(".git/objects")+"\n") // in a ring
	got, lost, err := repository.ObjectFolders(first.Path(".git"))
	must.Do(t, err)
	must.Same(t, []string{"/nowhere"}, lost, "missing folders")
	must.Same(t, []string{first.Path(".git"), second.Path(".git"), third.Path(".git")}, got, "folders")
	for _, line := range []string{`"quoted/objects"`, "/some/where/else"} {
		alternates(first, line+"\n")
		if _, _, err := repository.ObjectFolders(first.Path(".git")); !errors.As(err, new(*repository.UnsupportedError)) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestQuotesAlternatesForGit(t *testing.T) {
	holder := gittest.Seeded(t)
	id := holder.Git("rev-parse", "HEAD")
	for _, name := range []string{"plain", "a:b", `a"b\c`, "a\nb"} {
		dir := filepath.Join(t.TempDir(), name)
		must.Do(t, os.Rename(holder.Dir, dir))
		holder.Dir = dir
		list := "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + repository.QuoteAlternate(filepath.Join(dir, ".git/objects"))
		must.Same(t, "commit", gittest.New(t).GitWith([]string{list}, nil, "cat-file", "-t", id), name)
	}
}

func TestReadsUnchangedIndexOnce(t *testing.T) {
	r := gittest.Seeded(t)
	c := open(t, r.Dir)
	first := must.Get(c.Index(t.Context()))(t)
	if again, err := c.Index(t.Context()); err != nil || again != first {
		t.Errorf("it was read again: %v", err)
	}
	r.Write("new", "n\n")
	r.Git("add", "new")
	must.Same(t, first.Len()+1, must.Get(c.Index(t.Context()))(t).Len(), "a new index is not seen")
	must.Do(t, c.WriteIndex(first, nil))
	must.Same(t, "?? new", r.Git("status", "--porcelain"), "status")
}

func TestReadsSplitIndex(t *testing.T) {
	r := gittest.Seeded(t)
	r.Git("update-index", "--split-index")
	r.Write("new", "n\n")
	r.Git("add", "new")
	ix := must.Get(open(t, r.Dir).Index(t.Context()))(t)
	var paths []string
	for i := range ix.Len() {
		paths = append(paths, string(ix.Path(i)))
	}
	must.Same(t, []string{"README", "gone", "new", "src/deep/er/x", "src/main.go"}, slices.Sorted(slices.Values(paths)), "paths")
}
