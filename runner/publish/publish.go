package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Prepare checks that a change of base can be published, before the first turn costs anything. It returns the key
// that signs the commit, or nil. If the user has not chosen the destination, Prepare also refuses a local one where
// a pull request was most likely expected.
func Prepare(ctx context.Context, to Destination, t intake.Task, base gitops.Base, j *job.Job, destinationChosen bool) (*sshsig.Key, error) {
	branch := t.Branch
	if local, isLocal := to.(Local); isLocal && !destinationChosen {
		if t.Issue != nil {
			return nil, NoTokenForIssue()
		}
		if to.publisher().Env.Token() != "" {
			if err := local.requireKnownOrigin(ctx, branch); err != nil {
				return nil, err
			}
		}
	}
	if err := requireBranchPossible(to.publisher().Workspace.Checkout(), branch, base); err != nil {
		return nil, err
	}
	key, err := ReadKey(ctx, to.publisher().Env, j.PullRequest.Commit)
	if err != nil {
		return nil, err
	}
	if err := to.RequirePublishable(ctx, branch, base); err != nil {
		return nil, err
	}
	current, err := to.tip(ctx, branch)
	switch {
	case err != nil:
		return nil, err
	case current.isForeign(base):
		return nil, foreignCommitError(branch, current)
	}
	f, onForge := to.(Forge)                   // a local repository's rules are hooks, which the push runs
	if onForge && j.Task.Expects != "answer" { // an answer needs no push
		err = f.requirePermitted(ctx, branch, base, j.PullRequest, current)
	}
	return key, err
}

// requireBranchPossible returns an error if the branch is the base, or its name conflicts with another branch.
func requireBranchPossible(in *gitops.Checkout, branch string, base gitops.Base) error {
	if branch == base.Branch {
		return outcome.Stopf(outcome.InvalidInput, "branch_name",
			"pull_request.branch is %s, which is the base itself; give another name.", branch)
	}
	if err := in.BranchFits(branch); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "branch_name", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return nil
}

// Publish commits, pushes and describes the change. It fills out step by step, so that out is right even with
// an error.
func Publish(ctx context.Context, to Destination, p Proposal, out *Publication) error {
	*out = Publication{}
	defer func() { p.recordIn(out) }() // following the base changes p
	if p.Change.Empty() {
		out.OpenPullOfTask = to.findOpenPullOfTask(ctx, &p)
		return nil
	}
	if p.failsUnpublished() {
		return nil
	}
	f, onForge := to.(Forge)
	if onForge {
		if err := f.followBase(ctx, &p); err != nil {
			return err
		}
	}
	switch {
	case p.Change.Empty(): // the base has the change by now
		out.OpenPullOfTask = to.findOpenPullOfTask(ctx, &p)
		return nil
	case p.failsUnpublished(): // on the new base
		return nil
	}
	if onForge {
		if err := f.requirePushable(ctx, &p); err != nil {
			return err
		}
	}
	return publishOverTip(ctx, to, &p, out)
}

// recordIn copies base, change and checks of the proposal to a publication.
func (p *Proposal) recordIn(out *Publication) {
	out.Base, out.Change, out.Verification = p.Base, p.Change, p.Verification
	out.InBase = p.movedFrom.SHA != "" && p.Change.Empty()
}

// publishOverTip pushes the change over the branch's current tip, and publishes the pull request. It returns
// an error if a person committed to the branch, or if another run repaired it meanwhile.
func publishOverTip(ctx context.Context, to Destination, p *Proposal, out *Publication) error {
	out.Draft = p.isDraft()
	if err := askPublishHooks(ctx, to, p, out); err != nil {
		return err
	}
	f, onForge := to.(Forge)
	if onForge && p.Task.Mode() != intake.Join {
		pull, _ := intake.FindPullRequest(ctx, f.Repo, p.Task.Branch, p.Base.Branch) // publishPull reports an error, with the change on the branch
		if err := refuseUnwanted(pull, p.Task.Branch, p.Base); err != nil {          // since RequirePublishable
			return err
		}
	}
	current, err := to.tip(ctx, p.Task.Branch)
	if err != nil {
		return err
	}
	madeByThisRun := current.madeBy(p)
	isOurs := madeByThisRun || current.isLatePush(p)
	overtaken := p.Task.Repair != nil && !isOurs && current.lease() != p.Task.Repair.HeadSHA // the branch has left the repaired commit
	switch {
	case current.isForeign(p.Base):
		return foreignCommitError(p.Task.Branch, current)
	case overtaken:
		return refuseOvertaken(p.Task.Branch, current)
	case current != nil && !madeByThisRun && current.hasSameChange(p):
		to.adoptCommit(ctx, p, current, out)
	default:
		err = to.commitAndPush(ctx, p, current, out)
	}
	if err != nil {
		return err
	}
	return to.publishPull(ctx, p, out)
}

// refuseOvertaken returns the outcome of a repair whose branch moved meanwhile, to current or, for nil, to nowhere.
func refuseOvertaken(branch string, current *tip) error {
	if current == nil {
		return outcome.Stopf(outcome.Skipped, "other_run", "Branch %s was deleted during the repair; nothing was pushed.", branch)
	}
	run := current.Trailer(forge.TrailerRun)
	if run == "" { // somebody reset it to a commit of the base
		return outcome.Stopf(outcome.Skipped, "foreign_commit",
			"Branch %s was reset during the repair, to commit %s, which no run made; nothing was pushed.", branch, clip.SHA(current.SHA))
	}
	return outcome.Stopf(outcome.Skipped, "other_run", "Another run (%s) pushed to %s during the repair; this one pushed nothing.", run, branch)
}

// askPublishHooks runs the hooks that may refuse publishing. Nothing is pushed before.
func askPublishHooks(ctx context.Context, to Destination, p *Proposal, out *Publication) error {
	if p.Hooks == nil {
		return nil
	}
	m := to.publisher()
	text, err := m.describe(p, m.BodyOptions(p), out)
	if err != nil {
		return err
	}
	var diff strings.Builder
	if err := m.Workspace.Checkout().WritePatch(ctx, p.Change, &diff); err != nil {
		return fmt.Errorf("write the diff of the change: %w", err)
	}
	d := hooks.Draft{
		Base: p.Base.Branch, BaseSHA: p.Base.SHA, Branch: p.Task.Branch, To: m.Mode, As: "pull_request", Title: text.title, Body: text.Body, Labels: append([]string{}, p.Job.PullRequest.Labels...),
		Draft: p.isDraft(), Diff: diff.String(), Files: p.Change.Paths(),
	}
	return p.Hooks.BeforePublish(ctx, d)
}

// Lessons opens or updates a separate pull request for lessons. name is part of its branch. Author, change
// and base come from p. If a person closed the pull request, it stays closed.
func Lessons(ctx context.Context, to Forge, p Proposal, lessons transcript.Lessons, name string) error {
	p.Summary, p.Stopped, p.InCheckout, p.EarlierCommit, p.descriptionFacts = "", nil, nil, "", descriptionFacts{lessons: &lessons}
	p.Verification = transcript.Verify{Passed: true}
	p.Task = intake.Task{Key: name, Branch: intake.BranchPrefix + name, Task: transcript.Task{Actor: p.Task.Actor, ActorID: p.Task.ActorID}}
	to.subject = transcript.AboutLessons
	err := to.RequirePublishable(ctx, p.Task.Branch, p.Base)
	if stop := (*outcome.Stop)(nil); errors.As(err, &stop) && stop.Outcome == outcome.Skipped {
		return nil
	}
	if err != nil {
		return err
	}
	return publishOverTip(ctx, to, &p, new(Publication))
}
