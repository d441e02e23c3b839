package gitops_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
)

// What is hidden is in no snapshot, no change and no copy, whether git ignores it
// or not and whatever becomes of it.
func TestWhatIsHiddenIsInNoChange(t *testing.T) {
	r := newRepo(t)
	r.write(".gitignore", "ignored/\n")
	r.write("conf/app", "a\n")
	r.seed()
	for _, name := range []string{"conf/cred", "ignored/cred", "vault/deep/inner", "open"} {
		r.write(name, "hidden\n")
	}
	r.write("ignored/other", "kept\n")
	c := r.open("")
	c.Hide([]string{"conf/cred", "ignored/cred", "vault", "./open", "later", "conf/gone/below"})
	snap := snapshot(t, c)
	kept := repo{t, filepath.Join(t.TempDir(), "kept")}
	if err := c.KeepUntracked(t.Context(), snap, kept.dir); err != nil {
		t.Fatal(err)
	}
	same(t, "kept", map[string]string{"ignored/other": "kept\n"}, kept.files())

	for _, name := range []string{"conf/cred", "vault/new", "later/made", "open"} {
		r.write(name, "changed\n")
	}
	r.write("conf/app", "b\n")
	r.write("vaults", "c\n")
	cs := changes(t, c, snap)
	var changed []string
	for _, f := range cs.Files {
		changed = append(changed, f.Path)
	}
	same(t, "changed", []string{"conf/app", "vaults"}, changed)
	if dirty, err := c.Dirty(t.Context()); err != nil || len(dirty) != 1 {
		t.Errorf("dirty: %q, %v", dirty, err)
	}
	if err := c.Restore(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	after := r.files()
	for name, want := range map[string]string{"conf/cred": "changed\n", "later/made": "changed\n", "vault/deep/inner": "hidden\n", "conf/app": "a\n", "vaults": ""} {
		if after[name] != want {
			t.Errorf("%s has %q", name, after[name])
		}
	}
}

// A link that was put in the place of a folder is taken away before what was in
// that is put back, and one that git ignores stands in the way.
func TestNothingIsPutBackThroughALink(t *testing.T) {
	for ignored, back := range map[string]string{"": "public\n", "/pub\n": "hidden\n"} {
		r := newRepo(t)
		r.write(".gitignore", ignored)
		r.git("add", "-f", ".gitignore")
		r.write("pub/cred", "public\n")
		r.write("conf/app", "a\n")
		r.git("add", "-f", "pub")
		r.seed()
		r.write("conf/cred", "hidden\n")
		c := r.open("")
		c.Hide([]string{"conf/cred"})
		snap := snapshot(t, c)
		if err := os.RemoveAll(r.path("pub")); err != nil {
			t.Fatal(err)
		}
		r.link("conf", "pub")
		err := c.Restore(t.Context(), changes(t, c, snap))
		if is := errors.As(err, new(*gitops.ObstructedError)); is != (ignored != "") || !is && err != nil {
			t.Errorf("with %q ignored: %v", ignored, err)
		}
		for name, want := range map[string]string{"conf/cred": "hidden\n", "pub/cred": back} {
			got, err := os.ReadFile(r.path(name))
			if err != nil || string(got) != want {
				t.Errorf("with %q ignored %s has %q, %v", ignored, name, got, err)
			}
		}
	}
}

func TestHiddenNamesOfFileSystemsThatFold(t *testing.T) {
	r := newRepo(t)
	r.write("Conf/App", "a\n")
	r.seed()
	r.git("config", "core.ignoreCase", "true")
	r.write("CONF/Cred", "hidden\n")
	c := r.open("")
	c.Hide([]string{"conf/CRED"})
	if cs := changes(t, c, snapshot(t, c)); !cs.Empty() {
		t.Errorf("changed: %v", cs.Files)
	}
	if is, err := c.BaseTracks("conf/aPP"); err != nil || !is {
		t.Errorf("the base has it: %t, %v", is, err)
	}
}

func TestBaseTracks(t *testing.T) {
	lib := newRepo(t)
	lib.write("in/words", "w\n")
	lib.seed()
	r := newRepo(t)
	r.write("conf/app", "a\n")
	r.write("conf/deep/app", "a\n")
	r.write("deep/app", "a\n")
	for link, target := range map[string]string{"link": "conf", "deep/up": "../conf/deep", "loop": "loop", "out": "../elsewhere", "absolute": "/etc", "to-lib": "lib/in"} {
		r.link(target, link)
	}
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "lib")
	r.seed()
	r.write("conf/new", "n\n")
	r.git("add", "conf/new")
	if err := os.RemoveAll(r.path("conf")); err != nil { // what stands in the work tree says nothing
		t.Fatal(err)
	}
	c := r.open("")
	for path, want := range map[string]bool{
		".": true, "conf": true, "conf/app": true, "./conf/../conf/deep/": true, "link": true, "link/app": true, "deep/up/app": true, "lib": true, "lib/in/words": true, "lib/in": true,
		"to-lib/words": true, "conf/new": false, "conf/app/below": false, "Conf/app": false, "none": false, "lib/none": false, "loop/x": false, "out/x": false, "absolute/passwd": false, ".git/config": false,
	} {
		if is, err := c.BaseTracks(path); err != nil || is != want {
			t.Errorf("%s: %t, %v", path, is, err)
		}
	}

	r.git("reset", "--quiet", "--hard")
	c = r.open("")
	c.Hide([]string{"lib/in/secret"})
	lib = repo{t, r.path("lib")}
	lib.write("in/secret", "hidden\n")
	kept := repo{t, filepath.Join(t.TempDir(), "kept")}
	if err := c.KeepUntracked(t.Context(), snapshot(t, c), kept.dir); err != nil {
		t.Fatal(err)
	}
	if got := kept.files(); got["lib/in/words"] != "w\n" || got["lib/in/secret"] != "" {
		t.Errorf("kept of the submodule: %q", got)
	}
}
