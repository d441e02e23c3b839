package runner

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
)

// The publish modes.
const (
	publishGitHub = "github" // push to GitHub, open a pull request
	publishLocal  = "local"  // commit here, push to an origin on this machine
	publishNone   = "none"   // leave the change in the checkout
)

// PublishModes are the values of --publish.
func PublishModes() []string { return []string{publishGitHub, publishLocal, publishNone} }

// publishMode is --publish, or GitHub where a token and a repository are known.
func (r *run) publishMode() string {
	switch {
	case r.options.Publish != "":
		return r.options.Publish
	case r.env.Token() != "" && r.repo.known():
		return publishGitHub
	}
	return publishLocal
}

// means are what the run publishes with.
func (r *run) means() publish.Means {
	return publish.Means{Record: r.rec, Workspace: r.ws(), Env: r.env, Repository: r.repo.Name(), ServerURL: r.repo.serverURL}
}

func (r *run) toForge() publish.Forge { return publish.Forge{Means: r.means(), Server: r.forge} }

// destination is where the run publishes; nil for nowhere.
func (r *run) destination() publish.Destination {
	switch r.publishMode() {
	case publishGitHub:
		return r.toForge()
	case publishLocal:
		return publish.Local{Means: r.means()}
	}
	return nil
}

// choosePublishing makes sure, before the first turn, that a change could be
// published: what stands in the way is cheaper to learn now.
func (r *run) choosePublishing(ctx context.Context) (err error) {
	to := r.destination()
	if to == nil {
		return nil
	}
	if err := r.wantsToken(); err != nil {
		return err
	}
	r.key, err = publish.Prepare(ctx, to, r.branch, r.base, r.job.PullRequest.Commit)
	return err
}

// wantsToken ends a run on an issue that would stop short of the pull request
// that its user most likely expects.
func (r *run) wantsToken() error {
	if r.options.Publish != "" || r.publishMode() == publishGitHub || r.task.issue == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "no_token",
		"A task from an issue ends in a pull request, which needs GITHUB_TOKEN; set it, or say --publish local to commit here only.")
}

func (r *run) canReachGitHub() error {
	switch {
	case !r.repo.known():
		return outcome.Stopf(outcome.InvalidInput, "no_repository",
			"No GitHub repository is known to publish to: set repository.name, or use --publish local.")
	case r.env.Token() == "":
		return outcome.Stopf(outcome.InvalidInput, "no_token",
			"There is no GitHub token: set GITHUB_TOKEN, with the permissions contents: write and pull-requests: write, or use --publish local.")
	}
	return nil
}

// publishChange commits, pushes and opens the pull request, as far as the
// publish mode goes.
func (r *run) publishChange(ctx context.Context) error {
	if err := r.gitUnchanged(ctx); err != nil {
		return err
	}
	judge := r.judgeChanges
	if r.changes.Empty() {
		judge = func(context.Context) error { return r.judgeLeftOut() }
	}
	if err := judge(ctx); err != nil {
		return err
	}
	to := r.destination()
	if to == nil {
		return nil
	}
	return r.publishTo(ctx, to, r.proposal())
}

func (r *run) publishTo(ctx context.Context, to publish.Destination, p publish.Proposal) error {
	var out publish.Publication
	made := r.changes
	defer func() {
		r.base, r.changes, r.table = out.Base, out.Change, out.Table
		if r.changes != made {
			r.drift.inCheckout = made
		}
		r.published = published{
			commit: out.Commit, branch: out.Branch, unchanged: out.Unchanged, remote: out.Remote, notPushed: out.NotPushed, pull: out.Pull, operation: out.Operation,
		}
		if out.BodyFile != "" {
			r.bodyFile = out.BodyFile
		}
	}()
	return publish.Publish(ctx, to, p, &out)
}

// proposal is the change with all that is told of it.
func (r *run) proposal() publish.Proposal {
	p := publish.Proposal{
		RunID: r.rec.ID, Job: r.job, Task: r.given(), Base: r.base, Change: r.changes, Table: r.table, Summary: r.summary, Stopped: r.overBudget, Key: r.key,
		InCheckout: r.changes, Committed: r.committed, ShownAs: r.shownAs, Follow: publish.Follow{Judge: r.judgeMoved},
	}
	if r.verifiesClean() && r.overBudget == nil {
		p.Follow.Verify = r.verifyOn
	}
	return p
}

// judgeMoved judges a change that followed its base.
func (r *run) judgeMoved(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
	r.job, r.changes = j, change
	return r.judgeChanges(ctx)
}

// verifyOn runs the checks on a change that followed its base.
func (r *run) verifyOn(ctx context.Context, table transcript.Verify, change *gitops.ChangeSet) (_ transcript.Verify, err error) {
	r.base, r.changes = change.Base, change
	r.table, err = r.checks().OnNewBase(ctx, table, change)
	return r.table, err
}

// goOn puts the change of the pull request into the checkout, as if the agent
// had made it: configuration and checks stay those of the base. It comes after
// the baseline, and counts as part of the change.
func (r *run) goOn(ctx context.Context) error {
	if intake.ModeOf(r.pull) != intake.Continue {
		return nil
	}
	change, err := r.toForge().EarlierChange(ctx, r.eventRepository(), r.pull, r.base)
	if err != nil || change == nil {
		return err
	}
	if err := r.checkout.LayOver(ctx, change); err != nil {
		return fmt.Errorf("go on with pull request #%d: %w", r.pull.Number, err)
	}
	return nil
}

// compose lays the run out for a replay.
func (r *run) compose(view *transcript.View) (body.Posts, error) {
	p := r.proposal()
	return body.Compose(view, r.means().BodyOptions(&p))
}

// published is publish.Publication as the stages know it.
type published struct {
	commit    string // on branch; empty when nothing was committed
	branch    string
	unchanged bool   // the branch held the same change already
	remote    string // where it was pushed, for people; empty: nowhere
	notPushed string // why not
	pull      *forge.PullRequest
	operation string // on the pull request
}

func (p published) whole() *publish.Publication {
	return &publish.Publication{
		Commit: p.commit, Branch: p.branch, Unchanged: p.unchanged, Remote: p.remote, NotPushed: p.notPushed, Pull: p.pull, Operation: p.operation,
	}
}

func (p published) reason() string               { return p.whole().Reason() }
func (p published) sentence(where string) string { return p.whole().Sentence(where) }
func (p published) pullRequest() record.PullRequest {
	if p.pull == nil {
		return record.PullRequest{Operation: "none"}
	}
	return record.PullRequest{Number: p.pull.Number, URL: p.pull.URL, Operation: p.operation}
}

// drift is what became of a change whose base moved.
type drift struct {
	inCheckout *gitops.ChangeSet // as the work tree holds it; nil while the base has not moved
}

// inCheckout is the change as the work tree holds it.
func (r *run) inCheckout() *gitops.ChangeSet {
	if r.drift.inCheckout != nil {
		return r.drift.inCheckout
	}
	return r.changes
}

// inBase says that there was a change, and the new base has all of it.
func (r *run) inBase() bool { return r.drift.inCheckout != nil && r.changes.Empty() }

// withoutChange is the end of a run that has nothing to publish.
func (r *run) withoutChange() *outcome.Stop {
	stop := outcome.Stopf(outcome.NoChanges, "nothing_to_do", "The agent ended without a change; its last message says why.")
	switch {
	case r.inBase():
		stop = outcome.Stopf(outcome.NoChanges, "already_in_base", "The change is one that %s has already, since %s.", r.base.Branch, gitops.Short(r.base.SHA))
	case len(r.dropped) > 0:
		stop = outcome.Stopf(outcome.NoChanges, "only_protected",
			"The agent changed protected files alone (%s), which policy.on_protected leaves out; if they are to change, take them out of policy.protect.", some(r.dropped))
	case r.job.Task.Expects == "answer":
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent answered and changed nothing; its answer is the summary.")
	}
	stop.Message += r.published.whole().ClosedSentence()
	return stop
}
