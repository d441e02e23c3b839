package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// present writes the body of the pull request and, in the mode github, opens
// or updates it.
func (r *run) present(ctx context.Context) error {
	title, body, err := r.writeBody()
	if err != nil || r.publishMode() != publishGitHub {
		return err
	}
	return r.proposePullRequest(ctx, title, body)
}

// writeBody writes the body of the pull request to the run directory.
func (r *run) writeBody() (title, body string, err error) {
	view, err := r.view()
	if err != nil {
		return "", "", err
	}
	if body, err = r.body(view); err != nil {
		return "", "", err
	}
	if err := r.dir.write(pullRequestFile, []byte(body)); err != nil {
		return "", "", err
	}
	r.bodyFile = pullRequestFile
	return r.title(view), body, nil
}

// view is what people are shown of the run so far. It is read from the file, so
// that it fits in memory; that nobody else wrote there shows in the chain's end.
func (r *run) view() (*transcript.View, error) {
	f, err := r.dir.root.Open(transcriptFile)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	view, err := transcript.Project(f)
	if r.log == nil {
		return view, err
	}
	if err != nil || view.Head != r.log.Head() {
		return nil, outcome.Stopf(outcome.PolicyViolation, "transcript_altered",
			"%s is not what agent-ci wrote: something of the run changed it; nothing was published, look at what the commands did.", r.dir.join(transcriptFile)).Because(err)
	}
	return view, nil
}

func (r *run) title(view *transcript.View) string {
	if r.job.PullRequest.Title != "" {
		return r.job.PullRequest.Title
	}
	return transcript.Title(view)
}

// draftMark stands in the body of a pull request that a run made a draft, so
// that a later run may make it ready: a draft that a person wants stays one.
const draftMark = "<!-- agent-ci: draft -->\n"

func (r *run) body(view *transcript.View) (string, error) {
	body, err := transcript.Body(view, transcript.BodyOptions{
		Mode: transcript.Mode(r.job.PullRequest.Transcript), RunDir: filepath.Base(r.dir.path), Draft: r.draftReasons(), Closing: r.closing(),
	})
	if err == nil && r.draft() {
		body = draftMark + body
	}
	return body, err
}

// draftReasons say why the pull request is a draft, beside a red verification,
// which the body tells itself.
func (r *run) draftReasons() []string {
	var reasons []string
	if r.job.PullRequest.Draft {
		reasons = append(reasons, "the job asks for one (pull_request.draft).")
	}
	if r.overBudget != nil {
		reasons = append(reasons, "a budget ended the work before it was done: "+r.overBudget.Message)
	}
	var before []string
	for _, row := range r.table.Rows {
		if row.Passed && row.After != "green" {
			before = append(before, row.Name)
		}
	}
	if len(before) > 0 {
		reasons = append(reasons, strings.Join(before, ", ")+" did not pass before the change either.")
	}
	return append(reasons, r.driftReasons()...)
}

// draft says whether the pull request must not be merged as it is.
func (r *run) draft() bool { return !r.table.Passed || len(r.draftReasons()) > 0 }

// proposePullRequest opens the pull request of the task's branch or brings the
// one that is open up to date.
func (r *run) proposePullRequest(ctx context.Context, title, body string) error {
	open, err := r.findPullRequest(ctx)
	if err != nil {
		return r.notProposed(err)
	}
	switch {
	case open != nil && open.State == "open" && r.published.unchanged:
		r.published.pull, r.published.operation = open, "none"
		return nil
	case open != nil && open.State == "open":
		err = r.updatePullRequest(ctx, open, title, body)
	default:
		err = r.createPullRequest(ctx, title, body)
	}
	if err != nil {
		return r.notProposed(err)
	}
	r.decorate(ctx)
	return r.record(transcript.TypePublish, transcript.Publish{
		Step: "pull_request", Branch: r.branch, HeadSHA: r.published.commit,
		Number: r.published.pull.Number, URL: r.published.pull.URL, Operation: r.published.operation,
	})
}

// notProposed tells that the branch is there although the pull request is not.
func (r *run) notProposed(err error) error {
	stop, ok := err.(*outcome.Stop)
	if !ok {
		return err
	}
	told := *stop
	told.Message += fmt.Sprintf(" The change is pushed to the branch %s, the body lies in %s; by hand: %s", r.branch, r.dir.join(pullRequestFile), r.proposeByHand())
	return &told
}

func (r *run) createPullRequest(ctx context.Context, title, body string) error {
	wanted := github.NewPullRequest{Title: title, Head: r.branch, Base: r.base.Branch, Body: body, Draft: r.draft()}
	pull, err := r.forge.CreatePullRequest(ctx, r.repo.owner, r.repo.name, wanted)
	if wanted.Draft && noDrafts(err) {
		r.warn("no_drafts", "This repository's plan has no draft pull requests; this one would be one.")
		wanted.Draft = false
		pull, err = r.forge.CreatePullRequest(ctx, r.repo.owner, r.repo.name, wanted)
	}
	if github.PullRequestExists(err) { // another run was faster
		return r.adoptPullRequest(ctx, title, body)
	}
	if err != nil {
		return forgeFailure("The pull request cannot be opened", err)
	}
	r.published.pull, r.published.operation = pull, "created"
	return nil
}

// noDrafts says whether GitHub refuses a pull request because it is a draft:
// private repositories of some plans have none.
func noDrafts(err error) bool {
	return github.KindOf(err) == github.Invalid && strings.Contains(err.Error(), "Draft pull requests are not supported")
}

func (r *run) updatePullRequest(ctx context.Context, open *github.PullRequest, title, body string) error {
	pull, err := r.forge.UpdatePullRequest(ctx, r.repo.owner, r.repo.name, open.Number, github.PullRequestUpdate{Title: &title, Body: &body})
	if err != nil {
		return forgeFailure(fmt.Sprintf("Pull request #%d cannot be updated", open.Number), err)
	}
	r.published.pull, r.published.operation = pull, "updated"
	madeDraft := strings.HasPrefix(open.Body, draftMark)
	if wanted := r.draft(); wanted != pull.Draft && (wanted || madeDraft) {
		r.decorated("draft", r.forge.SetDraft(ctx, pull, wanted))
	}
	return nil
}

// decorate adds what the job asks for. What fails is a warning: the pull
// request is there.
func (r *run) decorate(ctx context.Context) {
	wanted, number := r.job.PullRequest, r.published.pull.Number
	owner, name := r.repo.owner, r.repo.name
	if len(wanted.Labels) > 0 {
		r.decorated("labels", r.forge.AddLabels(ctx, owner, name, number, wanted.Labels))
	}
	if len(wanted.Assignees) > 0 {
		r.decorated("assignees", r.forge.AddAssignees(ctx, owner, name, number, wanted.Assignees))
	}
	if len(wanted.Reviewers)+len(wanted.Teams) > 0 {
		r.decorated("reviewers", r.forge.RequestReviewers(ctx, owner, name, number, wanted.Reviewers, wanted.Teams))
	}
}

func (r *run) decorated(what string, err error) {
	if err != nil {
		r.warn("pull_request_"+what, "The pull request's %s could not be set: %v", what, err)
	}
}

// reason and sentence tell of a change that was published.
func (p published) reason() string {
	switch {
	case p.commit == "":
		return "left_in_checkout"
	case p.pull != nil:
		return "pull_request"
	case p.remote != "":
		return "pushed"
	}
	return "committed"
}

func (p published) sentence(where string) string {
	switch {
	case p.commit == "":
		return fmt.Sprintf("The change stands in %s, uncommitted; look at it with git diff.", where)
	case p.pull != nil && p.operation == "none":
		return fmt.Sprintf("Pull request #%d holds the same change since an earlier run: %s.", p.pull.Number, p.pull.URL)
	case p.unchanged && p.operation != "created":
		return fmt.Sprintf("Branch %s holds the same change since an earlier run (commit %s).", p.branch, short(p.commit))
	case p.pull != nil:
		return fmt.Sprintf("Pull request #%d was %s: %s.", p.pull.Number, p.operation, p.pull.URL)
	case p.remote != "":
		return fmt.Sprintf("The change is commit %s on %s, pushed to %s; review it and merge.", short(p.commit), p.branch, p.remote)
	}
	return fmt.Sprintf("The change is commit %s on %s in %s, not pushed as %s; review it, and push the branch.", short(p.commit), p.branch, where, p.notPushed)
}
