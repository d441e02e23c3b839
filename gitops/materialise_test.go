package gitops_test

import (
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
)

func TestMaterialise(t *testing.T) {
	for _, variant := range []struct{ name, git string }{{"with git", gitProgram(t)}, {"without git", ""}} {
		t.Run(variant.name, func(t *testing.T) {
			r := newRepo(t)
			r.write(".gitignore", "cache/\n*.log\n")
			r.write(".gitattributes", "*.txt text eol=crlf\n")
			r.write("dos.txt", "a\r\nb\r\n")
			r.link("/etc/passwd", "link")
			r.write("run", "#!\n")
			r.chmod("run", 0o755)
			r.seed()
			r.write("cache/deep/x", "cached\n")
			r.write("mine", "untracked\n")
			r.link("mine", "cache/link")
			if err := syscall.Mkfifo(r.path("cache/pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := r.open(variant.git)
			snap := snapshot(t, c)
			kept := filepath.Join(t.TempDir(), "kept")
			if err := c.KeepUntracked(t.Context(), snap, kept); err != nil {
				t.Fatal(err)
			}
			before := r.filesBut("cache/pipe")
			edit(r)
			r.remove("gone")
			r.write("cache/deep/x", "poisoned\n")
			r.write("mine", "poisoned\n")
			r.write("new.log", "l")
			cs := changes(t, c, snap)

			fresh := repo{t, filepath.Join(t.TempDir(), "base")}
			err := c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: fresh.dir, Tree: cs.Base.Tree, Untracked: kept})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "base", before, fresh.files())
			same(t, "status of the base", []string{"?? mine"}, fresh.status())
			same(t, "HEAD", cs.Base.SHA, fresh.git("rev-parse", "HEAD"))

			changed := repo{t, filepath.Join(t.TempDir(), "changed")}
			err = c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: changed.dir, Tree: cs.Tree, Untracked: kept})
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(before)
			want["README"] = "one\n2\n"
			delete(want, "gone")
			same(t, "change", want, changed.files())
			same(t, "status of the change", []string{"M  README", "D  gone", "?? mine"}, changed.status())
			changed.git("commit", "-q", "-m", "it can be worked in")
			changed.git("fsck")
		})
	}
}

// What the change has in the place of a folder of untracked files stays what it is.
func TestMaterialiseWithALinkForAFolder(t *testing.T) {
	r := newRepo(t)
	r.write(".gitignore", "*.log\n")
	r.write("conf/plain", "x\n")
	r.write("other/plain", "y\n")
	r.seed()
	r.write("conf/deep/own.log", "kept\n")
	c := r.open("")
	snap := snapshot(t, c)
	kept := filepath.Join(t.TempDir(), "kept")
	if err := c.KeepUntracked(t.Context(), snap, kept); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(r.path("conf")); err != nil {
		t.Fatal(err)
	}
	r.link("other", "conf")
	fresh := repo{t, filepath.Join(t.TempDir(), "fresh")}
	if err := c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: fresh.dir, Tree: changes(t, c, snap).Tree, Untracked: kept}); err != nil {
		t.Fatal(err)
	}
	same(t, "status", []string{"A  conf", "D  conf/plain"}, fresh.status())
	if found, _ := filepath.Glob(fresh.path("other/*")); len(found) != 1 {
		t.Errorf("found %q, want the file of the tree alone", found)
	}
}

func TestMaterialiseWithFilters(t *testing.T) {
	r := newRepo(t)
	r.git("config", "filter.caps.clean", "tr A-Z a-z")
	r.git("config", "filter.caps.smudge", "tr a-z A-Z")
	r.write(".gitattributes", "*.caps filter=caps\n")
	r.write("a.caps", "HELLO\n")
	r.seed()
	c := r.open(gitProgram(t))
	snap := snapshot(t, c)
	r.write("a.caps", "BYE\n")
	cs := changes(t, c, snap)
	fresh := repo{t, filepath.Join(t.TempDir(), "fresh")}
	if err := c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: fresh.dir, Tree: cs.Tree}); err != nil {
		t.Fatal(err)
	}
	same(t, "file", "BYE\n", fresh.files()["a.caps"])
	same(t, "status", []string{"M  a.caps"}, fresh.status())
}

func TestSnapshotPassesOverItsOwnState(t *testing.T) {
	r := newRepo(t)
	r.seed()
	r.write("state/.keep", "")
	c, err := gitops.Open(t.Context(), gitops.Options{Dir: r.dir, State: r.path("state")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	snap := snapshot(t, c)
	edit(r)
	if err := os.WriteFile(r.path("state/output"), []byte("o"), 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, "change", []string{"M README"}, nameStatus(changes(t, c, snap)))
}

// Checks that need a submodule find its files in a fresh tree, where git takes
// them for nothing of its own.
func TestMaterialiseHasTheFilesOfSubmodules(t *testing.T) {
	other := newRepo(t)
	other.seed()
	r := newRepo(t)
	r.seed()
	for _, name := range []string{"sub", "empty"} {
		r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.dir, name)
	}
	r.commit("with submodules")
	r.git("submodule", "--quiet", "deinit", "empty")
	c := r.open(gitProgram(t))
	kept := filepath.Join(t.TempDir(), "kept")
	if err := c.KeepUntracked(t.Context(), snapshot(t, c), kept); err != nil {
		t.Fatal(err)
	}
	fresh := repo{t, filepath.Join(t.TempDir(), "fresh")}
	if err := c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: fresh.dir, Tree: gitops.Tree(r.git("rev-parse", "HEAD^{tree}")), Untracked: kept}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fresh.path("sub/README")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(fresh.path("sub/.git")); err == nil {
		t.Error("the fresh tree has the submodule's .git")
	}
	if entries, err := os.ReadDir(fresh.path("empty")); err != nil || len(entries) > 0 {
		t.Errorf("a submodule that is not checked out: %v, %v", entries, err)
	}
	same(t, "status", "", fresh.git("status", "--porcelain"))
}
