package gitops_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMaterialise(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write(".gitignore", "cache/\n*.log\n")
	r.Write(".gitattributes", "*.txt text eol=crlf\n")
	r.Write("dos.txt", "a\r\nb\r\n")
	r.Link("/etc/passwd", "link")
	r.Write("run", "#!\n")
	r.Chmod("run", 0o755)
	r.Seed()
	r.Write("cache/deep/x", "cached\n")
	r.Write("mine", "untracked\n")
	r.Link("mine", "cache/link")
	must.Do(t, syscall.Mkfifo(r.Path("cache/pipe"), 0o600))
	c := r.open()
	snap := snapshot(t, c)
	kept := untracked(t, c, snap).Dir
	before := r.filesBut("cache/pipe")
	edit(r)
	r.Remove("gone")
	r.Write("cache/deep/x", "poisoned\n")
	r.Write("mine", "poisoned\n")
	r.Write("new.log", "l")
	cs := changes(t, c, snap)

	fresh := materialised(t, c, gitops.TreeForCommands{Tree: cs.Base.Tree}, kept)
	must.Same(t, before, fresh.Files(), "base")
	must.Same(t, []string{"?? mine"}, fresh.status(), "status of the base")
	must.Same(t, cs.Base.SHA, fresh.Git("rev-parse", "HEAD"), "HEAD")

	changed := materialised(t, c, gitops.TreeForCommands{Tree: cs.Tree}, kept)
	want := maps.Clone(before)
	want["README"] = "one\n2\n"
	delete(want, "gone")
	must.Same(t, want, changed.Files(), "change")
	must.Same(t, []string{"M  README", "D  gone", "?? mine"}, changed.status(), "status of the change")
	changed.Git("commit", "-q", "-m", "it can be worked in")
	changed.Git("fsck")
}

// What the change has in the place of a folder of untracked files stays what it is.
func TestMaterialiseReplacesLinkByFolder(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write(".gitignore", "*.log\n")
	r.Write("conf/plain", "x\n")
	r.Write("other/plain", "y\n")
	r.Seed()
	r.Write("conf/deep/own.log", "kept\n")
	c := r.open()
	snap := snapshot(t, c)
	kept := untracked(t, c, snap).Dir
	r.Remove("conf")
	r.Link("other", "conf")
	fresh := materialised(t, c, gitops.TreeForCommands{Tree: changes(t, c, snap).Tree}, kept)
	must.Same(t, []string{"A  conf", "D  conf/plain"}, fresh.status(), "status")
	if found, _ := filepath.Glob(fresh.Path("other/*")); len(found) != 1 {
		t.Errorf("found %q, want the file of the tree alone", found)
	}
}

// Checks that need a submodule find its files and its repository in a fresh tree, without the
// credentials of the checkout's.
func TestMaterialiseCopiesSubmodulesWithoutCredentials(t *testing.T) {
	t.Parallel()
	below, other := newRepo(t), newRepo(t)
	below.Seed()
	other.Seed()
	other.AddSubmodule(below.Repo, "below")
	other.Commit("with one of its own")
	r := seededRepo(t)
	for _, name := range []string{"deep/sub", "empty"} {
		r.AddSubmodule(other.Repo, name)
	}
	r.Commit("with submodules")
	r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	r.Git("submodule", "--quiet", "deinit", "empty")
	r.Git("-C", "deep/sub", "config", "http.extraheader", "hunter22")
	r.Git("-C", "deep/sub", "remote", "set-url", "origin", "https://x:hunter22@example.invalid/sub")
	r.Git("-C", "deep/sub", "tag", "v1")
	c := r.open()
	fresh := materialised(t, c, gitops.TreeForCommands{Tree: gitops.Tree(r.Git("rev-parse", "HEAD^{tree}"))}, untracked(t, c, snapshot(t, c)).Dir)
	must.None(t, must.Get(os.ReadDir(fresh.Path("empty")))(t), "a submodule that is not checked out")
	for _, command := range [][]string{
		{"status", "--porcelain"},
		{"submodule", "status", "--recursive"},
		{"-C", "deep/sub", "log", "--format=%H %D"},
		{"-C", "deep/sub/below", "status", "--branch", "--porcelain"},
	} {
		must.Same(t, r.Git(command...), fresh.Git(command...), strings.Join(command, " "))
	}
	must.Same(t, "https://example.invalid/sub", fresh.Git("-C", "deep/sub", "remote", "get-url", "origin"), "origin")
	must.Lack(t, fresh.Git("-C", "deep/sub", "config", "--list"), "hunter22")
	fresh.Write("deep/sub/new", "x\n")
	fresh.Git("-C", "deep/sub", "add", "new")
	fresh.Git("-C", "deep/sub", "commit", "-q", "-m", "it can be worked in")
	must.Same(t, "", r.Git("status", "--porcelain"), "the checkout")
}
