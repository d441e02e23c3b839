package confine

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// WorkTree is the work tree of setup and agent, for the checkout's owner.
type WorkTree struct{ boxes *Sandboxes }

// WorkTree gives the work tree of the run.
func (s *Sandboxes) WorkTree() WorkTree { return WorkTree{s} }

// ClaimPath takes its path for this run.
func (t WorkTree) ClaimPath() error { return t.boxes.claimTreePath() }

// Private says whether it is a copy of the checkout.
func (t WorkTree) Private() bool { return t.boxes.Private() }

// SandboxPath returns its path for commands.
func (t WorkTree) SandboxPath() string { return t.boxes.SandboxPath(AgentPlace()) }

// ChangesFolder returns the agent's changes.
func (t WorkTree) ChangesFolder() string { return t.boxes.ChangesFolder(AgentPlace()) }

// GitFolder returns the place of these commands' .git in an overlay.
func (t WorkTree) GitFolder(of string) string { return t.boxes.GitFolder(Place{Scratch: of}) }

// CopySetupGit gives the agent in an overlay a copy of setup's .git, or none if that is too large.
func (t WorkTree) CopySetupGit(ctx context.Context) error {
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

// HasChanges reports whether these commands may have changed anything.
func (t WorkTree) HasChanges(of string) bool { return t.boxes.HasChanges(Place{Scratch: of}) }

// Drop removes these commands' changes; of a private tree everything.
func (t WorkTree) Drop(of string) error {
	if t.boxes.Private() {
		return t.boxes.DropTree()
	}
	return t.boxes.dropChanges(Place{Scratch: of})
}
