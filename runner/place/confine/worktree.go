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
type WorkTree struct{ *Sandboxes }

// WorkTree returns the work tree of the run.
func (s *Sandboxes) WorkTree() WorkTree { return WorkTree{s} }

// SandboxPath returns the tree's path for commands.
func (t WorkTree) SandboxPath() string { return t.Sandboxes.SandboxPath(AgentPlace()) }

// ChangesFolder returns the folder of the agent's changes.
func (t WorkTree) ChangesFolder() string { return t.Sandboxes.ChangesFolder(AgentPlace()) }

// GitFolder returns the folder of the .git of setup's or the agent's commands in an overlay.
func (t WorkTree) GitFolder(of string) string { return t.Sandboxes.GitFolder(Place{Scratch: of}) }

// CopySetupGit replaces the agent's .git in an overlay by a copy of setup's. If that is missing or
// too large, the agent gets none.
func (t WorkTree) CopySetupGit(ctx context.Context) error {
	agent := Place{Scratch: AgentScratch}
	if err := sandbox.RemoveScratch(t.Sandboxes.GitFolder(agent)); err != nil {
		return fmt.Errorf("remove an earlier .git: %w", err)
	}
	err := t.copyGit(ctx, Place{Scratch: SetupScratch}, agent)
	if large := (*layer.ForkError)(nil); errors.As(err, &large) { // the agent then sees the checkout's .git, read-only
		return sandbox.RemoveScratch(t.Sandboxes.GitFolder(agent))
	}
	return err
}

// Open opens the tree as the commands of SetupScratch or AgentScratch left it.
func (t WorkTree) Open(ctx context.Context, of string) (gitops.Layer, error) {
	return t.OpenLayer(ctx, Place{Scratch: of})
}

// HasChanges reports whether the commands of SetupScratch or AgentScratch may have changed
// anything.
func (t WorkTree) HasChanges(of string) bool { return t.Sandboxes.HasChanges(Place{Scratch: of}) }

// Drop removes what these commands changed. It removes a private tree completely.
func (t WorkTree) Drop(of string) error {
	if t.Private() {
		return t.dropTree()
	}
	return t.dropChanges(Place{Scratch: of})
}
