package publish

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
)

// Local publishes on this machine. It commits to the task's branch, and pushes if the origin is on this
// machine.
type Local struct{ Publisher }

// RequirePublishable returns an error in three cases: another work tree has checked the branch out, git pushes to a
// folder and to another place, or the branch's name does not fit in that folder.
func (l Local) RequirePublishable(ctx context.Context, branch string, _ gitops.Base) error {
	if err := l.Workspace.Checkout().RequireUnusedElsewhere(branch); err != nil {
		return workspace.CheckoutFailure(err)
	}
	to, err := l.pushTarget(ctx, branch)
	if _, local := to.Local(); err != nil || !local {
		return err
	}
	return requireBranchFits(ctx, to, branch)
}

// tip returns the branch's tip, or nil if there is no such branch. If git pushes to a local repository, the tip there
// has priority, unless a person made the one in the checkout.
func (l Local) tip(ctx context.Context, branch string) (*tip, error) {
	localTip, err := l.Workspace.Checkout().Tip(ctx, branch)
	if err != nil {
		return nil, fmt.Errorf("look up branch %s: %w", branch, err)
	}
	target, err := l.pushTarget(ctx, branch)
	if err != nil {
		return nil, err
	}
	path, isLocal := target.Local()
	isByPerson := localTip != nil && !localTip.MadeByRun()
	if isLocal && !isByPerson {
		remoteTip, err := gitops.ReadTip(ctx, path, branch)
		if err == nil && remoteTip != nil { // the push reports an error
			return pushedTip(remoteTip), nil
		}
	}
	if localTip == nil {
		return nil, nil
	}
	return &tip{Commit: localTip}, nil
}

// commitAndPush commits the change, switches the checkout to it, and pushes it if the origin is on this
// machine. It writes the body right after the commit, so that it exists if a later step fails or the process is killed.
func (l Local) commitAndPush(ctx context.Context, p *Proposal, before *tip, out *Publication) error {
	commit, err := l.commit(ctx, p, before, out)
	if err != nil {
		return err
	}
	if err := l.publishPull(ctx, p, out); err != nil {
		return err
	}
	return l.switchAndPush(ctx, p, commit, before, out)
}

// switchAndPush switches the checkout to the commit, and pushes it if the origin is on this machine.
func (l Local) switchAndPush(ctx context.Context, p *Proposal, commit string, before *tip, out *Publication) (err error) {
	if out.whyNotSwitched, err = l.Workspace.Switch(ctx, p.Task.Branch, commit, p.Change); err != nil {
		return err
	}
	out.Commit, out.Branch = commit, p.Task.Branch
	return l.pushToOrigin(ctx, p, commit, before, out)
}

// commit makes the commit. A resumed run continues with the commit that it made before it was killed.
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
		l.warnInPull(p, "unsigned", "The commit is not signed: only GitHub signs it (pull_request.commit.sign: github), and it was made on this machine.")
	}
	return l.commitHere(ctx, p, message)
}

// pushToOrigin pushes the branch if the origin is a repository on this machine. Otherwise it sets
// out.NotPushed to the reason.
func (l Local) pushToOrigin(ctx context.Context, p *Proposal, commit string, before *tip, out *Publication) error {
	to, err := l.pushTarget(ctx, p.Task.Branch)
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

// publishPull only writes the body to a file, because a local repository has no pull requests.
func (l Local) publishPull(_ context.Context, p *Proposal, out *Publication) error {
	_, err := l.describe(p, l.BodyOptions(p), out)
	return err
}

// findOpenPullOfTask returns nil, because a local repository has no pull requests.
func (Local) findOpenPullOfTask(context.Context, *Proposal) *forge.PullRequest { return nil }
