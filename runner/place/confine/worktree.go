package confine

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// WorkTree is what setup commands and the agent of a run work in, for who keeps the checkout.
type WorkTree struct{ boxes *Sandboxes }

// WorkTree gives the work tree of the run.
func (s *Sandboxes) WorkTree() WorkTree { return WorkTree{s} }

// Take takes its path for this run.
func (t WorkTree) Take() error { return t.boxes.takePath() }

// Private says whether it is a copy of the checkout.
func (t WorkTree) Private() bool { return t.boxes.Private() }

// Seen is the path at which commands find it.
func (t WorkTree) Seen() string { return t.boxes.Seen(Agent()) }

// Folder has what the agent changed.
func (t WorkTree) Folder() string { return t.boxes.ChangesOf(Agent()) }

// Git is where the .git of these commands in an overlay belongs.
func (t WorkTree) Git(of string) string { return t.boxes.GitFolder(Place{Scratch: of}) }

// GiveGit gives the agent in an overlay a .git like the one that setup commands left. Where that can't be
// copied, because it is too large for one, it gives none.
func (t WorkTree) GiveGit(ctx context.Context) error {
	agent := Place{Scratch: AgentScratch}
	if err := sandbox.RemoveScratch(t.boxes.GitFolder(agent)); err != nil {
		return fmt.Errorf("remove an earlier .git: %w", err)
	}
	err := t.boxes.copyGit(ctx, Place{Scratch: SetupScratch}, agent)
	if large := (*layer.ForkError)(nil); errors.As(err, &large) { // the agent finds the checkout's, read-only
		return sandbox.RemoveScratch(t.boxes.GitFolder(agent))
	}
	return err
}

// Open opens it as the commands of SetupScratch or AgentScratch left it.
func (t WorkTree) Open(ctx context.Context, of string) (gitops.Layer, error) {
	return t.boxes.OpenLayer(ctx, Place{Scratch: of})
}

// Any says whether these commands may have changed anything.
func (t WorkTree) Any(of string) bool { return t.boxes.Changed(Place{Scratch: of}) }

// Drop forgets what these commands changed; of a private tree all of it.
func (t WorkTree) Drop(of string) error {
	if t.boxes.Private() {
		return t.boxes.DropTree()
	}
	return t.boxes.DropChanges(Place{Scratch: of})
}
