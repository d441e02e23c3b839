package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
)

// present writes the body of the pull request and, in the mode github, opens
// or updates it.
func (r *run) present(ctx context.Context) error {
	if r.publishMode() == publishGitHub {
		r.noteChecks(ctx)
	}
	title, posts, err := r.writeBody()
	if err != nil || r.publishMode() != publishGitHub {
		return err
	}
	return r.proposePullRequest(ctx, title, posts)
}

// writeBody writes the body of the pull request to the run directory, and gives
// it with the comments that go on with it.
func (r *run) writeBody() (title string, posts body.Posts, err error) {
	view, err := r.rec.View()
	if err != nil {
		return "", posts, err
	}
	if posts, err = r.compose(view); err != nil {
		return "", posts, err
	}
	if err := r.rec.Write(record.PullRequestFile, []byte(posts.Body)); err != nil {
		return "", posts, err
	}
	r.bodyFile = record.PullRequestFile
	return r.title(view), posts, nil
}

func (r *run) title(view *transcript.View) string {
	if r.job.PullRequest.Title != "" {
		return r.job.PullRequest.Title
	}
	return body.Title(view)
}

// draftMark begins the body of a draft that a run made, which a later run may make
// ready: a draft that a person wants stays one.
const draftMark = "<!-- agent-ci: draft -->\n"

// compose lays the run out for its pull request. There are comments only where
// they can be written: before that the body stands alone.
func (r *run) compose(view *transcript.View) (body.Posts, error) {
	options := r.bodyOptions()
	if r.publishMode() == publishGitHub && r.published.commit != "" && !r.joins() {
		options.Comments = body.MaxComments
	}
	return body.Compose(view, options)
}

// bodyAlone writes the body for a pull request whose comments can't be written.
func (r *run) bodyAlone() (string, error) {
	view, err := r.rec.View()
	if err != nil {
		return "", err
	}
	posts, err := body.Compose(view, r.bodyOptions())
	if err != nil {
		return "", err
	}
	return posts.Body, r.rec.Write(record.PullRequestFile, []byte(posts.Body))
}

func (r *run) bodyOptions() body.Options {
	options := body.Options{
		Mode: body.Mode(r.job.PullRequest.Transcript), RunDir: cmp.Or(r.shownAs, filepath.Base(r.rec.Path())),
		Draft: r.draftReasons(), Notes: r.notes, Closing: r.closing(),
	}
	if r.joins() { // it becomes a comment on a person's
		return options
	}
	options.Template = r.pullTemplate()
	if r.draft() {
		options.Head = draftMark
	}
	if r.published.commit != "" && r.publishMode() == publishGitHub {
		options.Head += commitMark(r.published.commit)
	}
	return options
}

// tell has a sentence said in the body of the pull request, below the summary:
// what a reader must know and that is no reason for a draft. It is said once,
// and must come before the body is written.
func (r *run) tell(note string) {
	if note = r.rec.Redact(note); !slices.Contains(r.notes, note) {
		r.notes = append(r.notes, note)
	}
}

// doubt makes the pull request a draft, for a reason that the body says.
func (r *run) doubt(reason string) {
	if reason = r.rec.Redact(reason); !slices.Contains(r.doubts, reason) {
		r.doubts = append(r.doubts, reason)
	}
}

// draftReasons say why the pull request is a draft, beside a red verification,
// which the body tells itself.
func (r *run) draftReasons() []string {
	reasons := slices.Clone(r.doubts)
	if r.job.PullRequest.Draft {
		reasons = append(reasons, "the job asks for one (pull_request.draft).")
	}
	if r.overBudget != nil && !r.bundled() { // else the body tells how the run ended
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
	return reasons
}

// draft says whether the pull request must not be merged as it is.
func (r *run) draft() bool {
	return !r.table.Passed || r.overBudget != nil || len(r.draftReasons()) > 0
}

// proposePullRequest opens the pull request of the task's branch or brings the
// one that is open up to date.
func (r *run) proposePullRequest(ctx context.Context, title string, posts body.Posts) error {
	open, err := r.findPullRequest(ctx)
	if err != nil {
		return r.notProposed(err)
	}
	switch {
	case open != nil && open.State == "open" && open.Base != r.base.Branch:
		return r.notProposed(r.otherBase(open))
	case open != nil && open.State == "open" && r.published.unchanged && r.saysAll(open):
		r.published.pull, r.published.operation = open, "none"
		return nil
	case r.joins():
		return r.joinPullRequest(ctx, posts.Body)
	case open != nil && open.State == "open":
		err = r.updatePullRequest(ctx, open, title, posts)
	default:
		err = r.createPullRequest(ctx, title, posts)
	}
	if err != nil {
		return r.notProposed(err)
	}
	return r.rec.Append(transcript.TypePublish, transcript.Publish{
		Step: "pull_request", Branch: r.branch, HeadSHA: r.published.commit,
		Number: r.published.pull.Number, URL: r.published.pull.URL, Operation: r.published.operation,
	})
}

// saysAll says whether an open pull request of the same change tells what this
// run has to tell. That it is a draft of a run depends on the checks, which may
// end otherwise now.
func (r *run) saysAll(open *forge.PullRequest) bool {
	if !isFinished(open.Body, r.published.commit) {
		return false
	}
	return !strings.Contains(open.Body, strings.TrimSpace(commitMark(r.published.commit))) || draftOfRun(open) == r.draft()
}

func draftOfRun(pull *forge.PullRequest) bool {
	return strings.HasPrefix(pull.Body, strings.TrimSpace(draftMark))
}

// markedAs is a body that is not finished for its commit.
func (r *run) markedAs(body, mark string) string {
	return strings.Replace(body, commitMark(r.published.commit), mark, 1)
}

// notProposed tells that the branch is there although the pull request is not.
func (r *run) notProposed(err error) error {
	stop, ok := err.(*outcome.Stop)
	if !ok {
		return err
	}
	told := *stop
	told.Message += fmt.Sprintf(" The change is pushed to the branch %s; ", r.branch) + r.proposeByHand()
	return &told
}

// createPullRequest opens it with a body that says so until its comments and the
// rest are there: a run that is killed in between is made good by the next one.
func (r *run) createPullRequest(ctx context.Context, title string, posts body.Posts) error {
	wanted := forge.NewPullRequest{Title: title, Head: r.branch, Base: r.base.Branch, Body: posts.Body, Draft: r.draft()}
	if r.wantsMore(posts) {
		wanted.Body = r.markedAs(posts.Body, unfinishedMark)
	}
	pull, err := r.repo.CreatePullRequest(ctx, wanted)
	if wanted.Draft && errors.Is(err, forge.ErrNoDrafts) {
		r.rec.Warn("no_drafts", "This repository's plan has no draft pull requests; this one would be one.")
		wanted.Draft = false
		pull, err = r.repo.CreatePullRequest(ctx, wanted)
	}
	if errors.Is(err, forge.ErrPullRequestExists) { // another run was faster
		return r.adoptPullRequest(ctx, title, posts)
	}
	if err != nil {
		return forgeFailure("The pull request cannot be opened", err)
	}
	r.published.pull, r.published.operation = pull, "created"
	r.decorate(ctx, pull, true)
	posts = r.putComments(ctx, pull, noComments, posts)
	if err := r.editPullRequest(ctx, title, posts.Body, title, wanted.Body); err != nil {
		r.rec.Warn("pull_request_body", "The body does not say yet that it is finished; another run sees to it: %v", err)
	}
	return nil
}

// wantsMore says whether there is more to a pull request than its body.
func (r *run) wantsMore(posts body.Posts) bool {
	p := r.job.PullRequest
	return len(posts.Comments)+len(p.Labels)+len(p.Assignees)+len(p.Reviewers)+len(p.Teams) > 0 || p.Milestone != ""
}

// updatePullRequest brings an open one up to date. Its body comes last: it names
// the commit that all is finished for.
func (r *run) updatePullRequest(ctx context.Context, open *forge.PullRequest, title string, posts body.Posts) error {
	r.published.pull, r.published.operation = open, "updated"
	wanted, madeDraft := r.draft(), draftOfRun(open)
	if wanted {
		r.decorated("draft", r.repo.SetDraft(ctx, open, true))
	}
	r.decorate(ctx, open, strings.Contains(open.Body, strings.TrimSpace(unfinishedMark)))
	posts = r.putComments(ctx, open, r.ownComments, posts)
	posts.Body = body.KeepTicks(posts.Body, open.Body)
	if !wanted && madeDraft {
		posts.Body = r.madeReady(ctx, open, posts.Body)
	}
	return r.editPullRequest(ctx, title, posts.Body, open.Title, open.Body)
}

// madeReady is the body of a draft of a run that is ready now. Where that fails,
// the body goes on to tell the next run whose draft it is.
func (r *run) madeReady(ctx context.Context, pull *forge.PullRequest, body string) string {
	err := r.repo.SetDraft(ctx, pull, false)
	r.decorated("draft", err)
	if err != nil {
		return draftMark + r.markedAs(body, aloneMark)
	}
	return body
}

// editPullRequest sends of title and body what is not there yet.
func (r *run) editPullRequest(ctx context.Context, title, body, oldTitle, oldBody string) error {
	var edit forge.PullRequestUpdate
	if title != oldTitle {
		edit.Title = &title
	}
	if !sameText(body, oldBody) {
		edit.Body = &body
	}
	if edit == (forge.PullRequestUpdate{}) {
		return nil
	}
	number := r.published.pull.Number
	pull, err := r.repo.UpdatePullRequest(ctx, number, edit)
	if err != nil {
		return forgeFailure(fmt.Sprintf("Pull request #%d cannot be updated", number), err)
	}
	r.published.pull = pull
	return nil
}

// sameText says whether a text that GitHub gives back is the one that was sent:
// its page ends lines otherwise, and blanks at the end are nothing.
func sameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
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
		return fmt.Sprintf("Branch %s holds the same change since an earlier run (commit %s).", p.branch, gitops.Short(p.commit))
	case p.pull != nil:
		return fmt.Sprintf("Pull request #%d was %s: %s.", p.pull.Number, p.operation, p.pull.URL)
	case p.remote != "":
		return fmt.Sprintf("The change is commit %s on %s, pushed to %s; review it and merge.", gitops.Short(p.commit), p.branch, p.remote)
	}
	return fmt.Sprintf("The change is commit %s on %s in %s, not pushed as %s; review it, and push the branch.", gitops.Short(p.commit), p.branch, where, p.notPushed)
}
