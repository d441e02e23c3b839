package confine

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// WorkTree is the work tree of setup and agent. It implements workspace.Tree.
type WorkTree struct{ boxes *Sandboxes }

// WorkTree returns the work tree of the run.
func (s *Sandboxes) WorkTree() WorkTree { return WorkTree{s} }

// ClaimPath reserves the tree's path for this run.
func (t WorkTree) ClaimPath() error { return t.boxes.claimTreePath() }

// Private reports whether the tree is a copy of the checkout.
func (t WorkTree) Private() bool { return t.boxes.Private() }

// SandboxPath returns the tree's path for commands.
func (t WorkTree) SandboxPath() string { return t.boxes.SandboxPath(AgentPlace()) }

// ChangesFolder returns the folder of the agent's changes.
func (t WorkTree) ChangesFolder() string { return t.boxes.ChangesFolder(AgentPlace()) }

// GitFolder returns the folder of the .git of setup's or the agent's commands in an overlay.
func (t WorkTree) GitFolder(of string) string { return t.boxes.GitFolder(Place{Scratch: of}) }

// CopySetupGit copies setup's .git for the agent in an overlay. If that .git is too large, the
// agent gets none.
func (t WorkTree) CopySetupGit(ctx context.Context) error {
	agent := Place{Scratch: AgentScratch}
	if err := sandbox.RemoveScratch(t.boxes.GitFolder(agent)); err != nil {
		return fmt.Errorf("remove an earlier .git: %w", err)
	}
	err := t.boxes.copyGit(ctx, Place{Scratch: SetupScratch}, agent)
	if large := (*layer.ForkError)(nil); errors.As(err, &large) { // the agent then sees the checkout's .git, read-only
		return sandbox.RemoveScratch(t.boxes.GitFolder(agent))
	}
	return err
}

// Open opens the tree as the commands of SetupScratch or AgentScratch left it.
func (t WorkTree) Open(ctx context.Context, of string) (gitops.Layer, error) {
	return t.boxes.OpenLayer(ctx, Place{Scratch: of})
}

// HasChanges reports whether the commands of SetupScratch or AgentScratch may have changed
// anything.
func (t WorkTree) HasChanges(of string) bool { return t.boxes.HasChanges(Place{Scratch: of}) }

// Drop removes what these commands changed. It removes a private tree completely.
func (t WorkTree) Drop(of string) error {
	if t.boxes.Private() {
		return t.boxes.DropTree()
	}
	return t.boxes.dropChanges(Place{Scratch: of})
}
