package workspace

import (
	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// State is what the stages of package runner still read and write of a workspace by
// themselves; it goes with the last of them.
type State struct {
	Checkout      *gitops.Checkout
	Cloned        bool
	Base, BegunAt gitops.Base
	Snapshot      *gitops.Snapshot
	Kept          bool
	Hidden        *grants.Secrets
	Moving        bool
}

// State gives what the stages read.
func (w *Workspace) State() State {
	return State{w.checkout, w.cloned, w.base, w.begunAt, w.snapshot, w.kept, w.hidden, w.moving}
}

// Adopt takes over what the stages wrote.
func (w *Workspace) Adopt(s State) {
	w.checkout, w.cloned, w.base, w.begunAt, w.snapshot, w.kept, w.hidden, w.moving = s.Checkout, s.Cloned, s.Base, s.BegunAt, s.Snapshot, s.Kept, s.Hidden, s.Moving
	if w.checkout != nil {
		w.root = w.checkout.Root()
	}
}
