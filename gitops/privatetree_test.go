package gitops_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// private makes a private tree of a checkout.
func private(t *testing.T, c *gitops.Checkout) (tree repo, in *gitops.Checkout, snap *gitops.Snapshot, unread []string) {
	t.Helper()
	tree = at(t, filepath.Join(t.TempDir(), "tree"))
	snap, unread, err := c.MakePrivateTree(t.Context(), tree.Dir, snapshot(t, c))
	must.Do(t, err)
	root := must.Get(os.OpenRoot(tree.Dir))(t)
	t.Cleanup(func() { root.Close() })
	return tree, c.InLayer(gitops.Layer{Tree: root}), snap, unread
}

// rich is a repository with most of what a checkout can have beside plain files.
func rich(t *testing.T) repo {
	r := newRepo(t)
	r.Write(".gitignore", "cache/\n*.log\n")
	r.Write("a/one", "1\n")
	r.Write("a/two", "2\n")
	r.Write("run", "#!\n")
	r.Chmod("run", 0o755)
	r.Link("a/one", "link")
	r.Seed()
	return r
}

func TestPrivateTreeCopiesFilesUnchanged(t *testing.T) {
	t.Parallel()
	r := rich(t)
	r.Write("mine", "untracked\n")
	r.Write("cache/deep/object", "ignored\n")
	r.Write("secret", "hidden\n")
	r.Chmod("mine", 0o640)
	r.Chmod("cache/deep", 0o750)
	then := time.Unix(1_500_000_000, 123_456_789)
	for _, name := range []string{"mine", "a/one", "cache/deep", "cache"} {
		must.Do(t, os.Chtimes(r.Path(name), then, then))
	}
	must.Do(t, os.Link(r.Path("mine"), r.Path("cache/again")))
	must.Do(t, syscall.Mkfifo(r.Path("cache/pipe"), 0o600))
	c := r.open()
	c.Hide([]string{"secret"})
	tree, _, _, unread := private(t, c)
	must.None(t, unread, "not read")
	r.Remove("cache/pipe", "secret")
	must.Same(t, r.Files(), tree.Files(), "files")
	for _, name := range []string{"mine", "a/one", "run", "cache/deep", "link"} {
		from := must.Get(os.Lstat(r.Path(name)))(t)
		to := must.Get(os.Lstat(tree.Path(name)))(t)
		if from.Mode() != to.Mode() || !from.ModTime().Equal(to.ModTime()) {
			t.Errorf("%s is %v of %v, was %v of %v", name, to.Mode(), to.ModTime(), from.Mode(), from.ModTime())
		}
	}
	one, _ := os.Stat(tree.Path("mine"))
	other, _ := os.Stat(tree.Path("cache/again"))
	must.Same(t, true, os.SameFile(one, other), "the two names of a file are two files")
	must.Same(t, []string(nil), tree.status(), "status") // info/exclude has what is not tracked
	must.Same(t, r.Git("rev-parse", "HEAD"), tree.Git("rev-parse", "HEAD"), "HEAD")
	must.Same(t, "main", tree.Git("branch", "--show-current"), "branch")
	tree.Write("a/one", "changed\n")
	tree.Git("stash")
	tree.Git("stash", "pop")
	tree.Git("commit", "--quiet", "--all", "--message=theirs")
	must.Same(t, []string{"?? mine"}, r.status(), "status of the checkout")
	tree.Git("fsck", "--connectivity-only")
}

func TestPrivateTreeIsolatesReadOnlySubmodules(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to all folders")
	}
	lib, r := newRepo(t), rich(t)
	lib.Write("lib.c", "int x;\n")
	lib.Seed()
	r.AddSubmodule(lib.Repo, "lib")
	r.Commit("with a submodule")
	folder := filepath.Join(r.Dir, "lib")
	must.Do(t, os.Chmod(folder, 0o555))
	tree, _, _, _ := private(t, r.open())
	t.Cleanup(func() { _ = errors.Join(os.Chmod(folder, 0o700), os.Chmod(filepath.Join(tree.Dir, "lib"), 0o700)) })
	if dir := tree.Git("-C", "lib", "rev-parse", "--absolute-git-dir"); !strings.HasPrefix(dir, tree.Dir) {
		t.Errorf("the submodule's repository is %s", dir)
	}
}

func TestPrivateTreeRefusesUnreadableTrackedFiles(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read all files")
	}
	r := rich(t)
	c := r.open()
	snap := snapshot(t, c)
	must.Do(t, os.Chmod(filepath.Join(r.Dir, "a"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(r.Dir, "a"), 0o700) })
	_, _, err := c.MakePrivateTree(t.Context(), filepath.Join(t.TempDir(), "tree"), snap)
	if unreadable, is := errors.AsType[*gitops.UnreadableError](err); !is || len(unreadable.Paths) != 1 {
		t.Errorf("%v", err)
	}
}

func TestPrivateTreeIsolatesSubmodules(t *testing.T) {
	t.Parallel()
	lib, r := newRepo(t), rich(t)
	lib.Write("lib.c", "int x;\n")
	lib.Seed()
	r.AddSubmodule(lib.Repo, "lib")
	r.Commit("with a submodule")
	r.Write("lib/.git", "gitdir: "+r.Path(".git/modules/lib")+"\n") // as old versions of git write it
	tree, in, snap, _ := private(t, r.open())
	must.Same(t, []string(nil), tree.status(), "status")
	if dir := tree.Git("-C", "lib", "rev-parse", "--absolute-git-dir"); !strings.HasPrefix(dir, tree.Dir) {
		t.Errorf("the submodule's repository is %s", dir)
	}
	tree.Write("lib/lib.c", "int y;\n")
	tree.Git("-C", "lib", "commit", "--quiet", "--all", "--message=theirs")
	must.Same(t, []gitops.ProblemKind{gitops.ProblemSubmodule}, kinds(changes(t, in, snap)), "problems")
	must.Same(t, lib.Git("rev-parse", "HEAD"), r.Git("-C", "lib", "rev-parse", "HEAD"), "the submodule of the checkout")
}
