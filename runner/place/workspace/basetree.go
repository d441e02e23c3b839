package workspace

import (
	"context"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
)

// baseTreeFolder has an unmodified tree of the base commit.
const baseTreeFolder = record.StateFolder + "/base"

// BaseTree returns a function that makes a fresh tree of the base commit at its first call. It
// never reuses a stopped run's tree.
func (w *Workspace) BaseTree() func(ctx context.Context) (dir string, err error) {
	return w.FreshTreeOf(w.base)
}

// FreshTreeOf is BaseTree of another commit of the repository.
func (w *Workspace) FreshTreeOf(base gitops.Base) func(ctx context.Context) (dir string, err error) {
	var making sync.Mutex
	made := ""
	return func(ctx context.Context) (string, error) {
		making.Lock()
		defer making.Unlock()
		if made != "" {
			return made, nil
		}
		w.rec.Remove(baseTreeFolder)
		dir := w.rec.Join(baseTreeFolder)
		if err := w.checkout.Materialise(ctx, gitops.MaterialiseOptions{Dir: dir, TreeForCommands: gitops.TreeForCommands{Tree: base.Tree, Base: base}}); err != nil {
			return "", err
		}
		made = dir
		return made, nil
	}
}
