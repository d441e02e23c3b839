package publish

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Local publishes on this machine: it commits to the task's branch and pushes to a local origin.
type Local struct{ Publisher }

// RequirePublishable verifies that git pushes to one place and the branch fits.
func (l Local) RequirePublishable(ctx context.Context, branch string, _ gitops.Base) error {
	to, err := l.pushesTo(ctx, branch)
	if _, local := to.Local(); err != nil || !local {
		return err
	}
	return requireBranchFits(ctx, to, branch)
}

// tip looks into the repositories on this machine.
func (l Local) tip(ctx context.Context, branch string) (*tip, error) {
	head, err := l.Workspace.Checkout().Tip(ctx, branch)
	if err != nil {
		return nil, fmt.Errorf("look up branch %s: %w", branch, err)
	}
	to, err := l.pushesTo(ctx, branch)
	if err != nil {
		return nil, err
	}
	path, local := to.Local()
	if !local || head != nil && !head.Ours() {
		return tipOf(head, false), nil
	}
	there, err := gitops.ReadTip(ctx, path, branch)
	if err != nil || there == nil { // a push will say what is wrong with it
		return tipOf(head, false), nil
	}
	return tipOf(there, true), nil
}

// requirePermitted leaves a local repository's rules, its hooks, to the push.
func (Local) requirePermitted(context.Context, string, gitops.Base, job.PullRequest, *tip) error {
	return nil
}

func (Local) followBase(context.Context, *Proposal) error { return nil }

func (Local) requirePushable(context.Context, *Proposal) error { return nil }

func (l Local) commitAndPush(ctx context.Context, p *Proposal, before *tip, out *Publication) error {
	commit, err := l.commit(ctx, p, before, out)
	if err != nil {
		return err
	}
	if out.whyNotSwitched, err = l.Workspace.Switch(ctx, p.Task.Branch, commit, p.Change); err != nil {
		return err
	}
	out.Commit, out.Branch = commit, p.Task.Branch
	return l.pushToOrigin(ctx, p, commit, before, out)
}

// commit makes the commit. After a kill it continues with the commit already on the branch.
func (l Local) commit(ctx context.Context, p *Proposal, before *tip, out *Publication) (string, error) {
	if before.madeBy(p) {
		out.Commit, out.Branch = before.SHA, p.Task.Branch
		return before.SHA, nil
	}
	message, err := l.commitMessage(p)
	if err != nil {
		return "", err
	}
	if p.Job.PullRequest.Commit.Sign == signGitHub {
		l.warn(p, "unsigned", "The commit is not signed: only GitHub signs it (pull_request.commit.sign: github), and it was made on this machine.")
	}
	commit, err := l.commitHere(ctx, p, message)
	if err != nil {
		return "", err
	}
	return commit, l.publishPull(ctx, p, out) // the body is there also when the push is refused
}

// pushToOrigin pushes the branch if the origin is a repository on this machine. Otherwise out.NotPushed says
// why not.
func (l Local) pushToOrigin(ctx context.Context, p *Proposal, commit string, before *tip, out *Publication) error {
	to, err := l.pushesTo(ctx, p.Task.Branch)
	if err != nil {
		return err
	}
	path, local := to.Local()
	if _, wrong := gitops.HeadOf(path); local && wrong == nil {
		return l.push(ctx, p, to, commit, before, out)
	}
	switch {
	case local:
		out.NotPushed = "git pushes to " + to.Name() + ", which is no repository"
	case to.URL == "":
		out.NotPushed = "the checkout has no origin"
	default:
		out.NotPushed = "the checkout's origin is not on this machine"
	}
	return nil
}

// publishPull only writes the body to a file: a local repository has no pull requests.
func (l Local) publishPull(_ context.Context, p *Proposal, out *Publication) error {
	_, err := l.describe(p, l.BodyOptions(p), out)
	return err
}

func (Local) openPullOfTask(context.Context, *Proposal) *forge.PullRequest { return nil }
