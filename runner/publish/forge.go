package publish

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Forge publishes on a forge. It pushes the task's branch, or lets the forge make the commit. Then it opens a
// pull request.
type Forge struct{ Publisher }

// Remote returns the pull request's git repository.
func (f Forge) Remote() remote.Remote {
	return f.remote(f.ServerURL+"/"+f.Name()+".git", f.Env.Token())
}

// RequirePublishable returns an error unless git pushes to the same repository, the base is there, the
// branch's name fits, and a pull request is possible.
func (f Forge) RequirePublishable(ctx context.Context, branch string, base gitops.Base) error {
	if err := f.requireGitPushTarget(ctx, branch); err != nil {
		return err
	}
	known, err := f.Repo.HasCommit(ctx, base.SHA)
	if err != nil {
		return intake.ForgeFailure("The base commit cannot be looked up in "+f.Name(), err)
	}
	if !known {
		return outcome.Stopf(outcome.InvalidInput, "base_not_pushed",
			"The base commit %s is not in %s; push %s first.", clip.SHA(base.SHA), f.Name(), workspace.BaseName(base))
	}
	if err := requireBranchFits(ctx, f.Remote(), branch); err != nil {
		return err
	}
	pull, err := intake.FindPullRequest(ctx, f.Repo, branch, base.Branch)
	if err != nil {
		return err
	}
	return refuseUnwanted(pull, branch, base)
}

// refuseUnwanted returns the outcome for a pull request that a person closed, or gave another base. A closed one
// means that the change is not wanted. pull may be nil.
func refuseUnwanted(pull *forge.PullRequest, branch string, base gitops.Base) error {
	switch {
	case pull == nil || pull.Merged:
		return nil
	case pull.State == "open" && pull.Base != base.Branch:
		return refuseOtherBase(pull, branch, base)
	case pull.State == "open":
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "pull_request_closed",
		"Pull request #%d for %s was closed without being merged; reopen it if you want agent-ci to work on it again.", pull.Number, branch)
}

// refuseOtherBase returns the error for an open pull request with another base. A change made on this base
// would add all of this base's commits to it, and runs do not change bases of pull requests.
func refuseOtherBase(pull *forge.PullRequest, branch string, base gitops.Base) error {
	return outcome.Stopf(outcome.Conflict, "other_base",
		"Pull request #%d for %s has the base %s, and this run has the base %s; run with --set repository.base=%s, change its base back, or close it.",
		pull.Number, branch, pull.Base, base.Branch, pull.Base)
}

// tip returns the branch's tip on the forge.
func (f Forge) tip(ctx context.Context, branch string) (*tip, error) {
	commit, err := intake.LookUpBranch(ctx, f.Repo, branch)
	return pushedTip(commit), err
}

// workflowsFolder is the folder whose files need more than push permission.
const workflowsFolder = ".github/workflows/"

// requirePushable returns an error if the change touches workflows and the token surely may not. GITHUB_TOKEN
// never may, and a classic token needs the scope workflow. For other tokens the push decides.
func (f Forge) requirePushable(ctx context.Context, p *Proposal) error {
	file := ""
	for _, changed := range p.Change.Files {
		if strings.HasPrefix(changed.Path, workflowsFolder) {
			file = markdown.FileName(changed.Path)
		}
	}
	if file == "" {
		return nil
	}
	if f.Forge.LacksScope("workflow") {
		return outcome.Stopf(outcome.ForgeFailed, "workflow_permission",
			"The change touches %s, and the token lacks the scope workflow; give it that scope, or keep workflow files out of the task.", file)
	}
	if ofWorkflow, _ := f.Forge.HasWorkflowToken(ctx); ofWorkflow { // on an error, let the push decide
		return outcome.Stopf(outcome.ForgeFailed, "workflow_permission",
			"The change touches %s, which GITHUB_TOKEN of GitHub Actions may never push; give the token of an app with the permission workflows: write, or a personal one.", file)
	}
	return nil
}

// commitAndPush commits and pushes. before is the branch's tip, or nil for a new branch; the push fails if the
// branch has moved from it. The push decides between concurrent runs, so the checkout follows only after it.
func (f Forge) commitAndPush(ctx context.Context, p *Proposal, before *tip, out *Publication) error {
	if err := f.readEarlierRequests(ctx, p); err != nil {
		return err
	}
	commit, onForge, err := f.commit(ctx, p)
	if err != nil {
		return err
	}
	if _, err := f.describe(p, f.BodyOptions(p), out); err != nil { // write the body before the push, so that it exists if the push is refused
		return err
	}
	if onForge {
		err = f.moveBranch(ctx, p, commit, before, out)
	} else {
		err = f.push(ctx, p, f.Remote(), commit, before, out)
	}
	if err != nil {
		return f.resolveFailedPush(ctx, p, err, out)
	}
	out.Commit, out.Branch = commit, p.Task.Branch
	f.switchCheckout(ctx, p, commit, out)
	return nil
}

// resolveFailedPush returns the outcome of a failed push. If the branch moved, another run of the task was
// first. If that run pushed the same change, its commit is adopted and there is no error.
func (f Forge) resolveFailedPush(ctx context.Context, p *Proposal, pushErr error, out *Publication) error {
	if !errors.As(pushErr, new(*remote.LeaseError)) {
		return pushErr
	}
	now, err := f.tip(ctx, p.Task.Branch)
	switch {
	case err != nil || now == nil: // it cannot be read, or was deleted
		return pushErr
	case !now.MadeByRun():
		return foreignCommitError(p.Task.Branch, now)
	case now.hasSameChange(p):
		f.adoptCommit(ctx, p, now, out)
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "other_run",
		"Another run of this task (%s) pushed to %s first, and its change is there.", now.Trailer(forge.TrailerRun), p.Task.Branch).Because(pushErr)
}

// adoptCommit takes over the commit on the branch. If this run pushed it before it was killed, the checkout follows.
func (f Forge) adoptCommit(ctx context.Context, p *Proposal, existing *tip, out *Publication) {
	f.Publisher.adoptCommit(ctx, p, existing, out)
	if existing.isLatePush(p) {
		f.switchCheckout(ctx, p, existing.SHA, out)
	}
}

// switchCheckout switches the checkout to the pushed branch. If the change followed a moved base, the
// checkout is not switched.
func (f Forge) switchCheckout(ctx context.Context, p *Proposal, commit string, out *Publication) {
	if p.InCheckout != p.Change {
		return
	}
	err := f.Workspace.Fetch(ctx, f.Remote(), remote.FetchOptions{Commit: commit}) // only a commit made by the forge is missing here
	if err == nil {
		out.whyNotSwitched, err = f.Workspace.Switch(ctx, p.Task.Branch, commit, p.Change)
	}
	if err != nil {
		f.Record.Warn("checkout_not_switched", "The change is pushed, but the checkout could not be switched to %s: %v", p.Task.Branch, err)
	}
}
