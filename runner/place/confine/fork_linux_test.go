package confine

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// forks are a run's sandboxes over a checkout, what git knows of that, and an agent's
// sandbox.
type forks struct {
	*Sandboxes
	repo     gittest.Repo
	checkout *gitops.Checkout
	snapshot *gitops.Snapshot
	parent   *sandbox.Sandbox
}

const tenLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

// forking has a checkout in which setup commands made what git ignores, and the agent
// is at work.
func forking(t *testing.T) forks {
	t.Helper()
	f := forks{Sandboxes: ready(t), repo: gittest.New(t)}
	f.Root = f.repo.Dir
	f.Checkout = &stubCheckout{}
	f.repo.Write(".gitignore", "made/\n*.log\n")
	f.repo.Write("text", tenLines)
	f.repo.Write("dir/file", "old\n")
	f.repo.Git("add", "-A")
	f.repo.Git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "seed")
	if err := f.SettleConfinement(t.Context()); err != nil {
		t.Skip(err)
	}
	f.checkout = must.Get(gitops.Open(t.Context(), gitops.Options{Dir: f.repo.Dir, Git: gittest.Program(t), State: t.TempDir()}))(t)
	t.Cleanup(func() { f.checkout.Close() })
	f.snapshot = must.Get(f.checkout.Snapshot(t.Context()))(t)
	setup := f.open(t, Place{Scratch: SetupScratch})
	f.run(t, setup, "mkdir made; echo setup >made/one")
	f.in(t, setup, Place{Scratch: SetupScratch}, func(c *gitops.Checkout) {
		f.snapshot = must.Get(c.WithLayer(t.Context(), f.snapshot))(t)
	})
	must.Do(t, setup.Close())
	f.parent = f.open(t, AgentPlace())
	return f
}

func (f forks) open(t *testing.T, p Place) *sandbox.Sandbox {
	t.Helper()
	box := must.Get(f.Open(t.Context(), p))(t)
	t.Cleanup(func() { box.Close() })
	return box
}

// run runs a script and gives its output.
func (f forks) run(t *testing.T, box *sandbox.Sandbox, text string) string {
	t.Helper()
	var output bytes.Buffer
	status, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"sh", "-c", text}, Dir: f.Root, Env: f.Environ, Output: &output})
	if err != nil || status.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v\n%s", text, status, err, output.String())
	}
	return output.String()
}

// in does something with the checkout as a sandbox has it.
func (f forks) in(t *testing.T, box *sandbox.Sandbox, p Place, do func(*gitops.Checkout)) {
	t.Helper()
	layer := must.Get(f.LayerOf(box, p))(t)
	defer layer.Tree.Close()
	defer layer.Upper.Close()
	do(f.checkout.InLayer(layer))
}

// tree is what git would commit of a sandbox's checkout.
func (f forks) tree(t *testing.T, box *sandbox.Sandbox, p Place) (tree gitops.Tree) {
	t.Helper()
	f.in(t, box, p, func(c *gitops.Checkout) {
		tree = must.Get(c.Changes(t.Context(), f.snapshot))(t).Tree
	})
	return tree
}

// fork forks the agent's workspace, and gives the tree that the fork begins with.
func (f forks) fork(t *testing.T, name string) (fork *sandbox.Sandbox, p Place, base gitops.Tree) {
	t.Helper()
	p = must.Get(f.Fork(t.Context(), f.parent, AgentPlace(), name))(t)
	fork = f.open(t, p)
	return fork, p, f.tree(t, fork, p)
}

// takeOver merges what a fork did into the agent's layer while commands are stopped.
func (f forks) takeOver(t *testing.T, base, fork gitops.Tree) (merged *gitops.ChangeSet, err error) {
	t.Helper()
	must.Do(t, f.parent.Paused(func() error {
		parent := f.tree(t, f.parent, AgentPlace())
		if merged, err = f.checkout.Merge(t.Context(), base, parent, fork); err == nil {
			f.in(t, f.parent, AgentPlace(), func(c *gitops.Checkout) { err = c.ApplyChange(t.Context(), merged) })
		}
		return nil
	}))
	return merged, err
}

func TestMergesForkIntoParent(t *testing.T) {
	f := forking(t)
	before := f.repo.Files()
	f.run(t, f.parent, `echo before >>dir/file; echo x >new; rm made/one; (while :; do echo x >>ticks.log; done) >/dev/null 2>&1 & until [ -s ticks.log ]; do :; done`)
	fork, place, base := f.fork(t, "fork-1")
	must.Same(t, "old\nbefore\nx\n M dir/file\n?? new\n", f.run(t, fork, "cat dir/file new; ls made; git status --short"), "the fork begins with")
	f.run(t, f.parent, `sed -i s/^1$/parent/ text; echo parent >parent`)
	f.run(t, fork, `sed -i s/^10$/fork/ text; rm new; echo fork >dir/forked; chmod +x dir/file; echo ignored >fork.log`)
	merged := must.Get(f.takeOver(t, base, f.tree(t, fork, place)))(t)
	var took []string
	for _, file := range merged.Files {
		took = append(took, string(file.Status)+" "+file.Path)
	}
	must.Same(t, []string{"M dir/file", "A dir/forked", "D new", "M text"}, took, "taken over")
	must.Same(t, "parent\nfork\nparent\nfork\ndir\nmade\nparent\ntext\nticks.log\n", f.run(t, f.parent, "head -1 text; tail -1 text; cat parent dir/forked; ls; test -x dir/file"), "the parent sees")
	must.Same(t, merged.Tree, f.tree(t, f.parent, AgentPlace()), "its tree")
	must.Same(t, before, f.repo.Files(), "the checkout")
}

func TestConflictMergesNothing(t *testing.T) {
	f := forking(t)
	fork, place, base := f.fork(t, "fork-1")
	f.run(t, f.parent, `sed -i s/^5$/parent/ text; rm dir/file`)
	f.run(t, fork, `sed -i s/^5$/fork/ text; echo fork >>dir/file; echo fork >clean`)
	before := f.tree(t, f.parent, AgentPlace())
	_, err := f.takeOver(t, base, f.tree(t, fork, place))
	var conflict *gitops.MergeError
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != 2 || !strings.Contains(err.Error(), `"dir/file" (changed here and deleted on the parent's side), "text" (both changed the same lines)`) {
		t.Errorf("got %v", err)
	}
	must.Same(t, before, f.tree(t, f.parent, AgentPlace()), "something was merged")
	must.Same(t, "fork\n", f.run(t, fork, "cat clean"), "the fork")
}

func TestRemovesFork(t *testing.T) {
	f := forking(t)
	must.Is(t, fs.ErrExist, must.Err(f.Fork(t.Context(), f.parent, AgentPlace(), AgentScratch)), "a fork in the place of another")
	fork, place, base := f.fork(t, "fork-1")
	f.run(t, fork, `echo fork >text; echo x >$TMPDIR/file`)
	again := must.Get(f.Fork(t.Context(), fork, place, "fork-2"))(t)
	f.run(t, fork, `mkdir -p sealed/in; chmod 0 sealed`)
	must.Do(t, errors.Join(fork.Close(), f.Remove(place)))
	must.Is(t, fs.ErrNotExist, must.Err(os.Lstat(f.scratchPath(place))), "something of it is left")
	must.Same(t, "fork\nsetup\n", f.run(t, f.open(t, again), "cat text made/one; ls $TMPDIR/file 2>/dev/null || true"), "a fork of it sees")
	must.Same(t, base, f.tree(t, f.parent, AgentPlace()), "the parent has another tree")
}

func TestRefusesForks(t *testing.T) {
	f := forking(t)
	f.run(t, f.parent, "fallocate -l 1G large.log 2>/dev/null || head -c 1G /dev/zero >large.log")
	_, err := f.Fork(t.Context(), f.parent, AgentPlace(), "fork-1")
	must.Same(t, true, errors.As(err, new(*layer.ForkError)), "of more than 1 GiB", err)
	if entries, err := os.ReadDir(f.Record.Join(ScratchFolder)); err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "fork-1" }) {
		t.Errorf("something of it is left: %v", err)
	}
	f.run(t, f.parent, "truncate -s 0 large.log; truncate -s 2G large.log")
	_, place, _ := f.fork(t, "fork-1")
	must.Same(t, 2<<30, must.Get(os.Stat(filepath.Join(grants.Upper(f.overlayFolderOf(place)), "large.log")))(t).Size(), "the holes of a file")
}

// The change is read from the overlay that the agent's sandbox leaves, unless another sandbox has it.
func TestAgentLeavesOverlayOpen(t *testing.T) {
	f := forking(t)
	f.run(t, f.parent, "echo agent >new; rm dir/file")
	closed := f.tree(t, f.parent, AgentPlace())
	must.Do(t, f.CloseAgent(f.parent))
	kept := f.agentLayer.Load()
	layer := must.Get(f.OpenLayer(t.Context(), AgentPlace()))(t)
	must.Same(t, true, layer.Tree == kept.Tree, "another sandbox was opened")
	change := must.Get(f.checkout.InLayer(layer).Changes(t.Context(), f.snapshot))(t)
	must.Same(t, closed, change.Tree, "the overlay has")
	must.Do(t, layer.Close())

	must.Do(t, f.CloseAgent(f.open(t, AgentPlace())))
	kept = f.agentLayer.Load()
	f.run(t, f.open(t, AgentPlace()), "echo later >new")
	must.Fail(t, "", must.Err(kept.Tree.Stat("new")), "the overlay stays open beside the next sandbox")
	must.Same(t, true, f.agentLayer.Load() == nil, "the overlay from before the next sandbox is dropped")
}
