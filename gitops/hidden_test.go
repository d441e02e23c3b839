package gitops_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// What is hidden is in no snapshot, no change and no copy, whether git ignores it
// or not and whatever becomes of it.
func TestChangesExcludeHiddenFiles(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write(".gitignore", "ignored/\n")
	r.Write("conf/app", "a\n")
	r.Seed()
	for _, name := range []string{"conf/cred", "ignored/cred", "vault/deep/inner", "open"} {
		r.Write(name, "hidden\n")
	}
	r.Write("ignored/other", "kept\n")
	c := r.open()
	c.Hide([]string{"conf/cred", "ignored/cred", "vault", "./open", "later", "conf/gone/below"})
	snap := snapshot(t, c)
	must.Same(t, map[string]string{"ignored/other": "kept\n"}, untracked(t, c, snap).Files(), "kept")

	for _, name := range []string{"conf/cred", "vault/new", "later/made", "open"} {
		r.Write(name, "changed\n")
	}
	r.Write("conf/app", "b\n")
	r.Write("vaults", "c\n")
	cs := changes(t, c, snap)
	changed := []string{"conf/app", "vaults"}
	must.Same(t, changed, pathsOf(cs), "changed")
	must.Same(t, 1, len(must.Get(c.Snapshot(t.Context()))(t).Dirty()), "dirty")
	must.Do(t, c.Revert(t.Context(), cs, changed))
	after := r.Files()
	for name, want := range map[string]string{"conf/cred": "changed\n", "later/made": "changed\n", "vault/deep/inner": "hidden\n", "conf/app": "a\n", "vaults": ""} {
		must.Same(t, want, after[name], name)
	}
}

// A link that was put in the place of a folder is taken away before what was in
// that is put back, and one that git ignores stands in the way.
func TestRevertFollowsNoLink(t *testing.T) {
	t.Parallel()
	for ignored, back := range map[string]string{"": "public\n", "/pub\n": "hidden\n"} {
		r := newRepo(t)
		r.Write(".gitignore", ignored)
		r.Git("add", "-f", ".gitignore")
		r.Write("pub/cred", "public\n")
		r.Write("conf/app", "a\n")
		r.Git("add", "-f", "pub")
		r.Seed()
		r.Write("conf/cred", "hidden\n")
		c := r.open()
		c.Hide([]string{"conf/cred"})
		tree, in, snap, _ := private(t, c)
		tree.Remove("pub")
		tree.Link("conf", "pub")
		tree.Write("conf/cred", "hidden\n")
		cs := changes(t, in, snap)
		err := in.Revert(t.Context(), cs, pathsOf(cs))
		if is := errors.As(err, new(*gitops.ObstructedError)); is != (ignored != "") || !is && err != nil {
			t.Errorf("with %q ignored: %v", ignored, err)
		}
		for name, want := range map[string]string{"conf/cred": "hidden\n", "pub/cred": back} {
			must.Same(t, want, tree.Read(name), fmt.Sprintf("%s with %q ignored", name, ignored))
		}
	}
}

func pathsOf(cs *gitops.ChangeSet) (paths []string) {
	for _, f := range cs.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

func TestHidesFoldedNames(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("Conf/App", "a\n")
	r.Seed()
	r.Git("config", "core.ignoreCase", "true")
	r.Write("CONF/Cred", "hidden\n")
	c := r.open()
	c.Hide([]string{"conf/CRED"})
	if cs := changes(t, c, snapshot(t, c)); !cs.Empty() {
		t.Errorf("changed: %v", cs.Files)
	}
	if is, err := c.BaseTracks("conf/aPP"); err != nil || !is {
		t.Errorf("the base has it: %t, %v", is, err)
	}
}

func TestBaseTracks(t *testing.T) {
	t.Parallel()
	lib := newRepo(t)
	lib.Write("in/words", "w\n")
	lib.Seed()
	r := newRepo(t)
	r.Write("conf/app", "a\n")
	r.Write("conf/deep/app", "a\n")
	r.Write("deep/app", "a\n")
	for link, target := range map[string]string{"link": "conf", "deep/up": "../conf/deep", "loop": "loop", "out": "../elsewhere", "absolute": "/etc", "to-lib": "lib/in"} {
		r.Link(target, link)
	}
	r.AddSubmodule(lib.Repo, "lib")
	r.Seed()
	r.Write("conf/new", "n\n")
	r.Git("add", "conf/new")
	r.Remove("conf") // what stands in the work tree says nothing
	c := r.open()
	for path, want := range map[string]bool{
		".": true, "conf": true, "conf/app": true, "./conf/../conf/deep/": true, "link": true, "link/app": true, "deep/up/app": true, "lib": true, "lib/in/words": true, "lib/in": true,
		"to-lib/words": true, "conf/new": false, "conf/app/below": false, "Conf/app": false, "none": false, "lib/none": false, "loop/x": false, "out/x": false, "absolute/passwd": false, ".git/config": false,
	} {
		must.Same(t, want, must.Get(c.BaseTracks(path))(t), path)
	}

	r.Git("reset", "--quiet", "--hard")
	c = r.open()
	c.Hide([]string{"lib/in/secret"})
	lib = at(t, r.Path("lib"))
	lib.Write("in/secret", "hidden\n")
	if got := untracked(t, c, snapshot(t, c)).Files(); got["lib/in/words"] != "w\n" || got["lib/in/secret"] != "" {
		t.Errorf("kept of the submodule: %q", got)
	}
}
