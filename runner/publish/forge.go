package publish

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Forge publishes on a forge: it pushes to the task's branch there, or lets the
// forge make the commit, and opens a pull request.
type Forge struct{ Publisher }

// Remote returns the pull request's git repository.
func (f Forge) Remote() remote.Remote {
	return f.remote(f.ServerURL+"/"+f.Name()+".git", f.Env.Token())
}

// RequirePublishable verifies that git pushes to the same repository, the branch fits, and a pull request is
// possible.
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
			"The base commit %s is not in %s; push %s first.", gitops.Short(base.SHA), f.Name(), workspace.BaseName(base))
	}
	if err := requireBranchFits(ctx, f.Remote(), branch); err != nil {
		return err
	}
	return f.requireNotClosed(ctx, branch, base)
}

// requireNotClosed ends a run whose pull request somebody closed: that is an answer.
func (f Forge) requireNotClosed(ctx context.Context, branch string, base gitops.Base) error {
	pull, err := intake.FindPullRequest(ctx, f.Repo, branch, base.Branch)
	switch {
	case err != nil || pull == nil || pull.Merged:
		return err
	case pull.State == "open" && pull.Base != base.Branch:
		return refuseOtherBase(pull, branch, base)
	case pull.State == "open":
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "pull_request_closed",
		"Pull request #%d for %s was closed without being merged; reopen it if you want agent-ci to work on it again.", pull.Number, branch)
}

// refuseOtherBase ends a run whose pull request has another base: a change on this one would include all
// of it, and runs do not choose bases.
func refuseOtherBase(pull *forge.PullRequest, branch string, base gitops.Base) error {
	return outcome.Stopf(outcome.Conflict, "other_base",
		"Pull request #%d for %s has the base %s, and this run has the base %s; run with --set repository.base=%s, change its base back, or close it.",
		pull.Number, branch, pull.Base, base.Branch, pull.Base)
}

func (f Forge) tip(ctx context.Context, branch string) (*tip, error) {
	commit, err := intake.LookUpBranch(ctx, f.Repo, branch)
	return tipOf(commit, true), err
}

// workflowsFolder requires more than push permission.
const workflowsFolder = ".github/workflows/"

// requirePushable detects before any push that the token may not change workflows: GITHUB_TOKEN never may,
// a classic token needs the scope workflow. Other tokens are unknown.
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
	if ofWorkflow, _ := f.Forge.HasWorkflowToken(ctx); ofWorkflow { // not to know is to try
		return outcome.Stopf(outcome.ForgeFailed, "workflow_permission",
			"The change touches %s, which GITHUB_TOKEN of GitHub Actions may never push; give the token of an app with the permission workflows: write, or a personal one.", file)
	}
	return nil
}

// commitAndPush lets the push decide; the checkout follows it.
func (f Forge) commitAndPush(ctx context.Context, p *Proposal, before *tip, out *Publication) error {
	if err := f.readEarlierRequests(ctx, p); err != nil {
		return err
	}
	commit, made, err := f.commit(ctx, p)
	if err != nil {
		return err
	}
	if _, err := f.describe(p, f.BodyOptions(p), out); err != nil { // it is there also when the push is refused
		return err
	}
	if made {
		err = f.moveBranch(ctx, p, commit, before, out)
	} else {
		err = f.push(ctx, p, f.Remote(), commit, before, out)
	}
	if err != nil {
		return f.afterLostRace(ctx, p, err, out)
	}
	out.Commit, out.Branch = commit, p.Task.Branch
	return f.followInCheckout(ctx, p, commit, out)
}

// afterLostRace returns the end after a failed push. If the branch moved, another run of the task
// takes precedence; if it pushed the same change, there is no error.
func (f Forge) afterLostRace(ctx context.Context, p *Proposal, failed error, out *Publication) error {
	if !errors.As(failed, new(*remote.LeaseError)) {
		return failed
	}
	now, err := f.tip(ctx, p.Task.Branch)
	switch {
	case err != nil || now == nil:
		return failed
	case !now.Ours():
		return foreignCommit(p.Task.Branch, now)
	case now.hasChange(p):
		return f.adoptExisting(ctx, p, now, out)
	}
	return outcome.Stopf(outcome.Skipped, "other_run",
		"Another run of this task (%s) pushed to %s first, and its change is there.", now.Trailer(forge.TrailerRun), p.Task.Branch).Because(failed)
}

// followInCheckout switches the checkout to the pushed branch. It stays as before the run if the change
// followed a moved base.
func (f Forge) followInCheckout(ctx context.Context, p *Proposal, commit string, out *Publication) error {
	if p.InCheckout != p.Change {
		return nil
	}
	err := f.Workspace.Fetch(ctx, f.Remote(), commit, false) // it is here unless the forge made it
	if err == nil {
		out.whyNotSwitched, err = f.Workspace.Switch(ctx, p.Task.Branch, commit, p.Change)
	}
	if err != nil {
		f.Record.Warn("checkout_not_switched", "The change is pushed, but the checkout could not be switched to %s: %v", p.Task.Branch, err)
	}
	return nil
}
