package publish

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Prepare verifies before the first turn that a task's change of base can be published, when an
// obstacle is still cheap. named says that the user named the destination. It returns the signing key.
func Prepare(ctx context.Context, to Destination, t intake.Task, base gitops.Base, j *job.Job, named bool) (*sshsig.Key, error) {
	branch := t.Branch
	if local, is := to.(Local); is && !named {
		if t.Issue != nil { // its user most likely expects a pull request
			return nil, NoTokenForIssue()
		}
		if to.means().Env.Token() != "" {
			if err := local.knowsOrigin(ctx, branch); err != nil {
				return nil, err
			}
		}
	}
	if err := canBranch(to.means().Workspace.Checkout(), branch, base); err != nil {
		return nil, err
	}
	key, err := ReadKey(ctx, to.means().Env, j.PullRequest.Commit)
	if err != nil {
		return nil, err
	}
	if err := to.Ready(ctx, branch, base); err != nil {
		return nil, err
	}
	there, err := to.tip(ctx, branch)
	if err == nil && there.foreign(base) {
		err = foreignCommit(branch, there)
	}
	if err == nil && j.Task.Expects != "answer" { // which needs no push
		err = to.permits(ctx, branch, base, j.PullRequest, there)
	}
	return key, err
}

// canBranch verifies that the branch fits among others.
func canBranch(in *gitops.Checkout, branch string, base gitops.Base) error {
	if branch == base.Branch {
		return outcome.Stopf(outcome.InvalidInput, "branch_name",
			"pull_request.branch is %s, which is the base itself; give another name.", branch)
	}
	if err := in.BranchFits(branch); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "branch_name", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return nil
}

// Publish commits, moves and describes the change. It fills out as it proceeds, so an error's
// handler knows the effects.
func Publish(ctx context.Context, to Destination, p Proposal, out *Publication) error {
	*out = Publication{}
	defer func() { out.Base, out.Change, out.Table, out.InBase = p.Base, p.Change, p.Table, p.inBase() }()
	if !p.Change.Empty() && !p.red() {
		if err := to.follow(ctx, &p); err != nil {
			return err
		}
	}
	switch {
	case p.Change.Empty():
		out.StaysOpen = to.staysOpen(ctx, &p)
		return nil
	case p.red():
		return nil
	}
	if err := to.mayPush(ctx, &p); err != nil {
		return err
	}
	return publishOver(ctx, to, &p, out)
}

func publishOver(ctx context.Context, to Destination, p *Proposal, out *Publication) error {
	out.Draft = p.draft()
	if err := askOfDraft(ctx, to, p, out); err != nil {
		return err
	}
	before, err := to.tip(ctx, p.Task.Branch)
	if err != nil {
		return err
	}
	take := to.release
	switch {
	case before.foreign(p.Base):
		return foreignCommit(p.Task.Branch, before)
	case p.Task.Repair != nil && !before.madeBy(p) && before.lease() != p.Task.Repair.Head:
		return overtaken(p.Task.Branch, before)
	case before != nil && !before.madeBy(p) && before.holds(p):
		take = to.means().adopt
	}
	if err := take(ctx, p, before, out); err != nil {
		return err
	}
	return to.present(ctx, p, out)
}

// overtaken ends a repair whose pull request got another commit meanwhile.
func overtaken(branch string, now *tip) error {
	if now == nil {
		return outcome.Stopf(outcome.Skipped, "other_run", "Branch %s was deleted during the repair; nothing was pushed.", branch)
	}
	return outcome.Stopf(outcome.Skipped, "other_run",
		"Another run (%s) pushed to %s during the repair; this one pushed nothing.", now.Trailer(forge.TrailerRun), branch)
}
