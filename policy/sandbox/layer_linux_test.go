package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// layered has a sandbox leave a workspace with a few files as it is.
func layered(t *testing.T) func(*Options) {
	return func(o *Options) {
		o.Layered = true
		for _, name := range []string{"file", "dir/one", "dir/two", "hidden", "deep/in/hidden", ".git/HEAD"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(o.Workspace, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(o.Workspace, name), "old\n", 0o644)
		}
		o.DenyRead = []string{filepath.Join(o.Workspace, "hidden"), filepath.Join(o.Workspace, "deep/in/hidden")}
	}
}

func openTree(t *testing.T, box *Sandbox) *os.Root {
	t.Helper()
	tree, err := box.Tree()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Commands and this process see one tree, and the workspace is as it was.
func TestALayeredWorkspaceStaysAsItIs(t *testing.T) {
	for _, tier := range []string{"full", "namespaces"} {
		t.Run(tier, func(t *testing.T) {
			box, o := confined(t, tier, layered(t))
			run(t, box, o, `echo new >new; echo more >>file; rm -r dir; mkdir dir; echo three >dir/three; touch -c deep/in/hidden || true; ! mv deep moved; ! echo x >.git/HEAD`)
			root := openTree(t, box)
			for name, want := range map[string]string{"new": "new\n", "file": "old\nmore\n", "dir/three": "three\n", "dir/one": "", "hidden": "", ".git/HEAD": "old\n"} {
				if got, _ := root.ReadFile(name); string(got) != want {
					t.Errorf("%s is %q in the tree, not %q", name, got, want)
				}
			}
			if err := root.WriteFile("from-outside", []byte("seen"), 0o644); err != nil {
				t.Error(err)
			}
			if got := run(t, box, o, "cat from-outside"); got != "seen" {
				t.Errorf("commands see %q", got)
			}
			if err := root.WriteFile(".git/HEAD", nil, 0o644); err == nil {
				t.Error("git's folder can be written through the tree")
			}
			if got := namesIn(t, o.Workspace); !slices.Equal(got, []string{".git", "deep", "dir", "file", "hidden"}) {
				t.Errorf("the workspace has %q", got)
			}
			if got, _ := os.ReadFile(filepath.Join(o.Workspace, "file")); string(got) != "old\n" {
				t.Errorf("the workspace's file is %q", got)
			}
			if got := namesIn(t, o.Upper()); !slices.Equal(got, []string{"dir", "file", "from-outside", "new"}) {
				t.Errorf("the layer has %q", got)
			}
			if err := box.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := root.ReadFile("new"); string(got) != "new\n" {
				t.Errorf("a folder that was opened before the sandbox was closed reads %q, %v", got, err)
			}
		})
	}
}

// A layer that nobody adds to is seen by later sandboxes, each with changes of its own.
func TestLayersAboveALayer(t *testing.T) {
	first, o := confined(t, "full", layered(t))
	run(t, first, o, `echo setup >made; rm file`)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	later := func(name string, mode grants.Mode, git string) (*Sandbox, Options) {
		return confined(t, "full", func(next *Options) {
			scratch := next.Scratch
			next.Folders = o.Folders
			next.Scratch, next.Below, next.Mode, next.Git = scratch, []string{o.Scratch}, mode, git
		})
	}
	one, of := later("one", grants.WorkspaceWrite, "")
	two, _ := later("two", grants.WorkspaceWrite, "")
	if got := run(t, one, of, `cat made; ls file 2>/dev/null || echo gone; echo one >>made; cat made`); got != "setup\ngone\nsetup\none\n" {
		t.Errorf("the first sees %q", got)
	}
	if got := run(t, two, of, `cat made; ls`); got != "setup\ndeep\ndir\nhidden\nmade\n" {
		t.Errorf("the second sees %q", got)
	}
	still, _ := later("still", grants.ReadOnly, "")
	if got := run(t, still, of, `cat made; { echo x >made; } 2>/dev/null || echo refused`); got != "setup\nrefused\n" {
		t.Errorf("one that may not write sees %q", got)
	}
	own := t.TempDir()
	withGit, _ := later("git", grants.WorkspaceWrite, own)
	run(t, withGit, of, `echo own >.git/HEAD`)
	if got := namesIn(t, own); !slices.Equal(got, []string{"HEAD"}) {
		t.Errorf("the git folder of its own has %q", got)
	}
	if got := namesIn(t, filepath.Join(o.Scratch, "tree/upper")); !slices.Equal(got, []string{"file", "made"}) {
		t.Errorf("the layer below has %q", got)
	}
}

// What can't be layered is found by trying, and no other way to confine is taken
// instead.
func TestAWorkspaceThatCannotBeLayered(t *testing.T) {
	_, o := confined(t, "full", layered(t))
	o.Scratch = t.TempDir()
	if _, _, err := Probe(t.Context(), o); err != nil {
		t.Errorf("where it can be: %v", err)
	}
	if got := namesIn(t, o.Workspace); len(got) != 5 {
		t.Errorf("the workspace has %q after the trial", got)
	}
	o.Below = []string{t.TempDir()}
	if err := os.Mkdir(filepath.Join(o.Below[0], "tree"), 0o700); err != nil { // without the changes that are to lie below
		t.Fatal(err)
	}
	_, _, err := Probe(t.Context(), o)
	if refused := (*LayerError)(nil); !errors.As(err, &refused) || refused.Why == "" {
		t.Errorf("got %v", err)
	}
}
