package workspace

import (
	"context"
	"maps"
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
)

// ending is a context that ends at the first question after something has happened: it dies, as the process
// does, or says that it was canceled.
type ending struct {
	context.Context
	happened func() bool
	dies     bool
}

func (e ending) Err() error {
	switch {
	case !e.happened():
		return nil
	case e.dies:
		panic("killed")
	}
	return context.Canceled
}

// The change of another agent is in the tree as a whole or not at all, also where the process dies, or
// the run is stopped, while its files are written.
func TestFinishesInterruptedMerge(t *testing.T) {
	for name, dies := range map[string]bool{"killed": true, "stopped": false} {
		t.Run(name, func(t *testing.T) { mergeIsFinished(t, dies) })
	}
}

func mergeIsFinished(t *testing.T, dies bool) {
	c := cutShort(t)
	tree := gittest.Repo{T: t, Dir: c.Join(record.PrivateTree)}
	w := c.inItsTree(t)
	before := tree.Files()
	tree.Write("README", "worked\nmerged\n")
	tree.Write("new/b", "b\n")
	tree.Remove("gone")
	tree.Write("src/deep/zz", "z\n")
	want, theirs := tree.Files(), must.Get(w.Changes(t.Context()))(t)
	for name := range want {
		tree.Remove(name)
	}
	tree.WriteAll(before)
	mine := must.Get(w.Changes(t.Context()))(t)

	ctx := ending{t.Context(), func() bool { _, err := os.Lstat(tree.Path("gone")); return err != nil }, dies}
	died := func() (died any) {
		defer func() { died = recover() }()
		layer := must.Get(w.tree.Open(ctx, OfAgent))(t)
		defer layer.Close()
		must.Get(w.MergeCopy(ctx, layer, func(string) error { return nil }, mine.Tree, theirs.Tree))(t)
		return nil
	}()
	if dies {
		if half := tree.Files(); died == nil || maps.Equal(half, before) || maps.Equal(half, want) {
			t.Fatalf("it was to die in the middle of the merge: %v, %v", died, half)
		}
		must.Do(t, w.Close())
		w = c.inItsTree(t)
	}
	must.Do(t, w.FinishCalls(t.Context()))
	must.Same(t, want, tree.Files())
}

// inItsTree resumes the run in the private tree that it has left.
func (c cut) inItsTree(t *testing.T) *Workspace {
	t.Helper()
	w, _, err := c.goOn(t, "")
	must.Do(t, err)
	must.Do(t, w.UseTree(t.Context(), privateTree(c.Join(record.PrivateTree))))
	return w
}
