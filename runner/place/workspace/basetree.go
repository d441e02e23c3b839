package workspace

import (
	"context"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
)

// baseTreeFolder holds an unmodified tree of the base commit.
const baseTreeFolder = record.StateFolder + "/base"

// BaseTree returns a function that returns the folder of a fresh tree of the base commit. Its first
// call makes the tree; later calls return the same folder. A tree of a stopped run is never reused.
func (w *Workspace) BaseTree() func(ctx context.Context) (dir string, err error) {
	return w.FreshTreeOf(w.base)
}

// FreshTreeOf is like BaseTree, for another commit of the repository. Both use the same folder.
func (w *Workspace) FreshTreeOf(base gitops.Base) func(ctx context.Context) (dir string, err error) {
	var making sync.Mutex
	made := ""
	return func(ctx context.Context) (string, error) {
		making.Lock()
		defer making.Unlock()
		if made != "" {
			return made, nil
		}
		w.rec.Remove(baseTreeFolder) // of a stopped run
		dir := w.rec.Join(baseTreeFolder)
		if err := w.checkout.Materialise(ctx, gitops.MaterialiseOptions{Dir: dir, TreeForCommands: gitops.TreeForCommands{Tree: base.Tree, Base: base}}); err != nil {
			return "", err
		}
		made = dir
		return made, nil
	}
}
