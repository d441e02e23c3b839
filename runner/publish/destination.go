package publish

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Destination is where changes are published: Local or Forge.
type Destination interface {
	// Ready ends a run that could not publish a change of base on branch there, as
	// far as asking tells.
	Ready(ctx context.Context, branch string, base gitops.Base) error

	// tip is the end of a branch where it is published; nil when there is none.
	tip(ctx context.Context, branch string) (*tip, error)
	// follow puts the change on the newest commit of its base branch.
	follow(ctx context.Context, p *Proposal) error
	// mayPush ends a run whose change may not be pushed there.
	mayPush(ctx context.Context, p *Proposal) error
	// release commits the change and takes it to its branch, over what stood there
	// before and nothing else.
	release(ctx context.Context, p *Proposal, before *tip, out *Publication) error
	// present writes the body of the pull request, and opens or updates that where
	// there are any.
	present(ctx context.Context, p *Proposal, out *Publication) error
	// closePull closes the pull request of a change of which nothing is left.
	closePull(ctx context.Context, p *Proposal, out *Publication) error

	means() Means
}

// Means are what publishing works with, wherever it publishes.
type Means struct {
	Record    *record.Record
	Workspace *workspace.Workspace
	Env       settings.Environment

	Repository string // OWNER/NAME of what the change is of; empty where it is not known
	ServerURL  string // of the forge's pages and repositories
}

func (m Means) means() Means { return m }

// adopt takes what the branch holds for the publication: an earlier run, or another
// one, published the same. The checkout is put back.
func (m Means) adopt(ctx context.Context, p *Proposal, there *tip, out *Publication) error {
	if err := m.putBack(ctx, p); err != nil {
		return err
	}
	out.Commit, out.Branch, out.Unchanged = there.sha, p.Task.Branch, true
	return nil
}

// putBack puts the checkout back to where it was before the run.
func (m Means) putBack(ctx context.Context, p *Proposal) error {
	if p.InCheckout == nil {
		return nil
	}
	return m.Workspace.Restore(ctx, p.InCheckout)
}
