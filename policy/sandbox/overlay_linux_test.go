package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// overlaid has a sandbox leave a workspace with a few files as it is.
func overlaid(t *testing.T) func(*Options) {
	return func(o *Options) {
		o.Overlay = filepath.Join(filepath.Dir(o.Workspace), "overlay")
		for _, name := range []string{"file", "dir/one", "dir/two", "hidden", "deep/in/hidden", ".git/HEAD"} {
			must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(o.Workspace, name)), 0o755))
			put(t, filepath.Join(o.Workspace, name), "old\n", 0o644)
		}
		o.DenyRead = []string{filepath.Join(o.Workspace, "hidden"), filepath.Join(o.Workspace, "deep/in/hidden")}
	}
}

func openTree(t *testing.T, box *Sandbox) *os.Root {
	t.Helper()
	tree := must.Get(box.Tree())(t)
	root := must.Get(os.OpenRoot(tree))(t)
	t.Cleanup(func() { root.Close() })
	return root
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Commands and this process see one tree, and the workspace is as it was.
func TestOverlayKeepsWorkspaceUnchanged(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, overlaid(t))
		run(t, box, o, `echo new >new; echo more >>file; rm -r dir; mkdir dir; echo three >dir/three; touch -c deep/in/hidden || true; ! mv deep moved; ! echo x >.git/HEAD`)
		root := openTree(t, box)
		for name, want := range map[string]string{"new": "new\n", "file": "old\nmore\n", "dir/three": "three\n", "dir/one": "", "hidden": "", ".git/HEAD": "old\n"} {
			if got, _ := root.ReadFile(name); string(got) != want {
				t.Errorf("%s is %q in the tree, not %q", name, got, want)
			}
		}
		must.Is(t, nil, root.WriteFile("from-outside", []byte("seen"), 0o644))
		must.Same(t, "seen", run(t, box, o, "cat from-outside"), "commands see")
		must.Fail(t, "", root.WriteFile(".git/HEAD", nil, 0o644), "git's folder can be written through the tree")
		must.Same(t, []string{".git", "deep", "dir", "file", "hidden"}, namesIn(t, o.Workspace), "the workspace has")
		if got, _ := os.ReadFile(filepath.Join(o.Workspace, "file")); string(got) != "old\n" {
			t.Errorf("the workspace's file is %q", got)
		}
		must.Same(t, []string{"dir", "file", "from-outside", "new"}, namesIn(t, grants.Upper(o.Overlay)), "the overlay has")
		must.Do(t, box.Close())
		if got, err := root.ReadFile("new"); string(got) != "new\n" {
			t.Errorf("a folder that was opened before the sandbox was closed reads %q, %v", got, err)
		}
	})
}

// What the kernel refuses in an overlay alone is told as that.
func TestExplainsOverlayRefusals(t *testing.T) {
	box, o := confined(t, "full", overlaid(t))
	bare, of := confined(t, "full", nil)
	for words, want := range map[string]string{
		"Invalid cross-device link":             "can't be renamed in one step",
		"Value too large for defined data type": "belongs to another user or group",
	} {
		script := "echo " + words + "; exit 1"
		clues := WatchRefusals(io.Discard)
		status, err := box.Run(t.Context(), bash(o, script, clues))
		if got := box.Explain(clues, status); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v", words, got, err)
		}
		clues = WatchRefusals(io.Discard)
		status, err = bare.Run(t.Context(), bash(of, script, clues))
		if got := bare.Explain(clues, status); err != nil || got != "" {
			t.Errorf("%s without an overlay: %q, %v", words, got, err)
		}
	}
}

// Changes that nobody adds to are seen by later sandboxes, each with changes of its own.
func TestOverlaysStackOnFrozenChanges(t *testing.T) {
	first, o := confined(t, "full", overlaid(t))
	run(t, first, o, `echo setup >made; rm file`)
	must.Do(t, first.Close())
	later := func(git string) (*Sandbox, Options) {
		return confined(t, "full", func(next *Options) {
			scratch := next.Scratch
			next.Folders = o.Folders
			next.Scratch, next.Overlay, next.LowerLayers, next.Git = scratch, filepath.Join(filepath.Dir(scratch), "overlay"), []string{o.Overlay}, git
		})
	}
	one, of := later("")
	two, _ := later("")
	must.Same(t, "setup\ngone\nsetup\none\n", run(t, one, of, `cat made; ls file 2>/dev/null || echo gone; echo one >>made; cat made`), "the first sees")
	must.Same(t, "setup\ndeep\ndir\nhidden\nmade\n", run(t, two, of, `cat made; ls`), "the second sees")
	own := tempDir(t)
	put(t, filepath.Join(own, "HEAD"), "own\n", 0o644)
	withGit, _ := later(own)
	must.Same(t, "own\nx\n", run(t, withGit, of, `cat .git/HEAD; echo x >.git/HEAD; cat .git/HEAD`), "one with a git folder of its own sees")
	must.Same(t, []string{"file", "made"}, namesIn(t, grants.Upper(o.Overlay)), "the frozen one has")
}

// What can't be in an overlay is found by trying, and no other way to confine is taken
// instead.
func TestProbeFindsUnsuitableOverlay(t *testing.T) {
	_, o := confined(t, "full", overlaid(t))
	o.Scratch, o.Overlay = tempDir(t), tempDir(t)
	for _, when := range []string{"where it can be", "after an earlier trial in the same folder"} {
		must.Is(t, nil, must.Err(Probe(t.Context(), o)), when)
	}
	must.Same(t, 5, len(namesIn(t, o.Workspace)), "the workspace has", "after the trial")
	hidden := o
	hidden.Scratch, hidden.Overlay, hidden.DenyRead = tempDir(t), tempDir(t), nil
	for _, name := range namesIn(t, o.Workspace) { // whichever the trial meets first
		hidden.DenyRead = append(hidden.DenyRead, filepath.Join(o.Workspace, name))
	}
	must.Is(t, nil, must.Err(Probe(t.Context(), hidden)), "where all files are hidden")
	o.LowerLayers = []string{tempDir(t)} // which has no changes
	_, err := Probe(t.Context(), o)
	if refused := (*OverlayError)(nil); !errors.As(err, &refused) || refused.Why == "" {
		t.Errorf("got %v", err)
	}
}

// The layer of an overlay is mounted once: who comes later waits for all that a sandbox
// which was left has running.
func TestOverlayMountsOnce(t *testing.T) {
	box, o := confined(t, "full", overlaid(t))
	run(t, box, o, "echo 1 >new")
	next := o
	next.EarlyProcess, next.overlayWait = nil, 1
	_, err := Open(t.Context(), next)
	if held := (*layer.MountedError)(nil); !errors.As(err, &held) || held.PID != box.conn.supervisor.pid {
		t.Fatalf("got %v", err)
	}
	next.overlayWait = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, must.Err(openConfined(ctx, next)))
	box.conn.supervisor.kill()
	again := must.Get(Open(t.Context(), next))(t)
	defer again.Close()
	must.Same(t, "1\n", run(t, again, next, "cat new"), "commands see")
}
