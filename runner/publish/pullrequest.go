package publish

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/shellword"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// joinTime limits the comment about a commit on a person's branch.
const joinTime = 20 * time.Second

// publishPull writes the body, and opens or updates the branch's pull request.
func (f Forge) publishPull(ctx context.Context, p *Proposal, out *Publication) error {
	defer f.Record.BeginStep(record.PhasePublishing, "pull request of "+p.Task.Branch)()
	if p.Task.Mode() == intake.Join { // even a stopped run writes its comment, because no later run would
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), joinTime)
		defer cancel()
	}
	f.noteCheckApproval(ctx, p)
	if err := f.readEarlierRequests(ctx, p); err != nil {
		return err
	}
	text, err := f.describe(p, f.finishedBodyOptions(p, out.Commit, body.MaxComments), out)
	if err != nil {
		return err
	}
	open, err := f.findOpenPull(ctx, p)
	switch {
	case err != nil:
		return f.explainUnopenedPull(err, p, text)
	case open != nil && out.Unchanged && isUpToDate(open, p, out.Commit):
		out.Pull, out.Operation = open, "none" // still recorded, since the run that opened it may have been killed before
	case p.Task.Mode() == intake.Join:
		existing, _ := f.commentsAbout(ctx, p.Task.Pull, out.Commit) // if they cannot be read: two comments are better than none
		f.commentOnJoin(ctx, p.Task.Pull, existing, out.Commit, text.Body)
		out.Pull, out.Operation = p.Task.Pull, "updated"
	case open != nil:
		err = f.updatePull(ctx, p, text, open, out)
	default:
		err = f.createPull(ctx, p, text, out)
	}
	if err != nil {
		return f.explainUnopenedPull(err, p, text)
	}
	return f.recordStep(transcript.Publish{
		Step: "pull_request", Branch: p.Task.Branch, HeadSHA: out.Commit, Number: out.Pull.Number, URL: out.Pull.URL, Operation: out.Operation,
	})
}

// noteCheckApproval adds to the body that checks need approval if GITHUB_TOKEN opens the pull request. A
// warning would appear too often.
func (f Forge) noteCheckApproval(ctx context.Context, p *Proposal) {
	if p.Task.Mode() == intake.Join {
		return
	}
	if ofWorkflow, _ := f.Forge.HasWorkflowToken(ctx); ofWorkflow {
		p.facts = append(p.facts, "Checks of this pull request wait until somebody approves them here, since GITHUB_TOKEN opened it")
	}
}

// finishedBodyOptions returns BodyOptions with the mark of the finished commit, up to comments comments that
// continue the body, and the request for later bodies. A comment on a person's pull request has none of these.
func (f Forge) finishedBodyOptions(p *Proposal, commit string, comments int) body.Options {
	options := f.BodyOptions(p)
	if isPersonsPull := p.Task.Mode() == intake.Join; !isPersonsPull {
		options.Head += intake.FinishedMark(commit)
		options.Comments, options.KeepRequest = comments, true
	}
	return options
}

// findOpenPull returns the open pull request of the task's branch, or nil.
func (f Forge) findOpenPull(ctx context.Context, p *Proposal) (*forge.PullRequest, error) {
	pull, err := intake.FindPullRequest(ctx, f.Repo, p.Task.Branch, p.Base.Branch)
	switch {
	case err != nil:
		return nil, err
	case pull == nil || pull.State != "open":
		return nil, nil
	case pull.Base != p.Base.Branch: // a person changed its base meanwhile
		return nil, refuseOtherBase(pull, p.Task.Branch, p.Base)
	}
	return pull, nil
}

// findOpenPullOfTask returns the open pull request of a task that ended without a change. The run does not close it,
// since the earlier change may be right. It returns nil if there is none, if the forge cannot be asked, or if the
// end says nothing about a pull request: after a stop, and for an answer.
func (f Forge) findOpenPullOfTask(ctx context.Context, p *Proposal) *forge.PullRequest {
	if p.Job.Task.Expects == "answer" || p.Stopped != nil || p.Task.Branch == "" || p.Task.Mode() == intake.Join {
		return nil
	}
	pull, err := intake.FindPullRequest(ctx, f.Repo, p.Task.Branch, p.Base.Branch)
	if err != nil || pull == nil || pull.State != "open" {
		return nil
	}
	return pull
}

// isUpToDate reports whether the open pull request needs no update for the same change, which is at commit. A body
// without a mark is a person's, and needs none. A run's body must declare commit finished. Then the draft state must
// fit, too: it depends on checks, which may differ now.
func isUpToDate(open *forge.PullRequest, p *Proposal, commit string) bool {
	if !intake.IsFinished(open.Body, commit) {
		return false
	}
	return !hasMark(open.Body, intake.FinishedMark(commit)) || isRunDraft(open) == p.isDraft()
}

// hasMark reports whether a body has a mark, also if a person's edit changed the line ends.
func hasMark(body, mark string) bool { return strings.Contains(body, strings.TrimSpace(mark)) }

// isRunDraft reports whether a run made the pull request a draft.
func isRunDraft(pull *forge.PullRequest) bool {
	return strings.HasPrefix(pull.Body, strings.TrimSpace(draftMark))
}

// markUnfinished replaces the mark of the finished commit in a body by another mark.
func markUnfinished(body, commit, mark string) string {
	return strings.Replace(body, intake.FinishedMark(commit), mark, 1)
}

// createPull opens the pull request. Its body is marked unfinished until comments and metadata exist. If the
// run is interrupted, the next run completes it.
func (f Forge) createPull(ctx context.Context, p *Proposal, text pullText, out *Publication) error {
	wanted := forge.NewPullRequest{Title: text.title, Head: p.Task.Branch, Base: p.Base.Branch, Body: text.Body, Draft: p.isDraft()}
	metadata := p.Job.PullRequest
	if len(text.Comments)+len(metadata.Labels)+len(metadata.Assignees)+len(metadata.Reviewers) > 0 {
		wanted.Body = markUnfinished(text.Body, out.Commit, intake.UnfinishedMark)
	}
	pull, err := f.Repo.CreatePullRequest(ctx, wanted)
	if wanted.Draft && errors.Is(err, forge.ErrNoDrafts) {
		f.Record.Warn("no_drafts", "This repository's plan has no draft pull requests; this one would be one.")
		wanted.Draft = false
		pull, err = f.Repo.CreatePullRequest(ctx, wanted)
	}
	if errors.Is(err, forge.ErrPullRequestExists) {
		return f.adoptPull(ctx, p, text, out)
	}
	if err != nil {
		return intake.ForgeFailure("The pull request cannot be opened", err)
	}
	out.Pull, out.Operation = pull, "created"
	complete := f.addMetadata(ctx, metadata, pull)
	f.addReviewers(ctx, metadata.Reviewers, pull)
	text = f.syncComments(ctx, p, text, out)
	if !complete {
		text.Body = markUnfinished(text.Body, out.Commit, intake.UncommentedMark)
	}
	err = f.editPull(ctx, text, wanted.Title, wanted.Body, out)
	if ctx.Err() != nil { // a resumed run does the rest
		return err
	}
	if err != nil {
		f.Record.Warn("pull_request_body", "The text of the pull request could not be marked as finished; the next run does it: %v", err)
	}
	return nil
}

// adoptPull updates a pull request that another run opened at the same time.
func (f Forge) adoptPull(ctx context.Context, p *Proposal, text pullText, out *Publication) error {
	open, err := f.findOpenPull(ctx, p)
	if err != nil {
		return err
	}
	if open == nil {
		return outcome.Stopf(outcome.ForgeFailed, string(forge.Invalid), "GitHub reports that branch %s has a pull request, but lists none; run again.", p.Task.Branch)
	}
	return f.updatePull(ctx, p, text, open, out)
}

// updatePull updates an open pull request. The body is written last, because it names the finished commit.
func (f Forge) updatePull(ctx context.Context, p *Proposal, text pullText, open *forge.PullRequest, out *Publication) error {
	out.Pull, out.Operation = open, "updated"
	isDraft, wasRunDraft := p.isDraft(), isRunDraft(open)
	onlyOpened, isIncomplete := hasMark(open.Body, intake.UnfinishedMark), hasMark(open.Body, intake.UncommentedMark)
	if isDraft {
		if err := f.makeDraft(ctx, open, out); err != nil {
			return err
		}
	}
	complete := true
	if onlyOpened || isIncomplete { // from any other, a person may have removed a label on purpose
		complete = f.addMetadata(ctx, p.Job.PullRequest, open)
	}
	if onlyOpened {
		f.addReviewers(ctx, p.Job.PullRequest.Reviewers, open)
	}
	text = f.syncComments(ctx, p, text, out)
	text.Body = body.KeepTicks(text.Body, open.Body)
	if wasRunDraft && !isDraft {
		text.Body = f.makeReady(ctx, open, text.Body, out.Commit)
	}
	if !complete {
		text.Body = markUnfinished(text.Body, out.Commit, intake.UncommentedMark)
	}
	return f.editPull(ctx, text, open.Title, open.Body, out)
}

// makeDraft makes an open pull request a draft. It marks the body first: without the mark, later runs would
// treat the draft as a person's and never make it ready.
func (f Forge) makeDraft(ctx context.Context, open *forge.PullRequest, out *Publication) error {
	if !open.Draft && !isRunDraft(open) {
		marked := pullText{title: open.Title, Posts: body.Posts{Body: draftMark + markUnfinished(open.Body, out.Commit, intake.UncommentedMark)}}
		if err := f.editPull(ctx, marked, open.Title, open.Body, out); err != nil {
			return err
		}
		open.Body = marked.Body
	}
	f.warnIfUnset("draft", f.Repo.SetDraft(ctx, open, true))
	return nil
}

// makeReady makes a run's draft ready for review, and returns the body. If that fails, the body keeps the
// draft mark, so the next run tries again.
func (f Forge) makeReady(ctx context.Context, pull *forge.PullRequest, body, commit string) string {
	err := f.Repo.SetDraft(ctx, pull, false)
	f.warnIfUnset("draft", err)
	if err != nil {
		return draftMark + markUnfinished(body, commit, intake.UncommentedMark)
	}
	return body
}

// editPull updates title and body if they changed.
func (f Forge) editPull(ctx context.Context, text pullText, oldTitle, oldBody string, out *Publication) error {
	var edit forge.PullRequestUpdate
	if text.title != oldTitle {
		edit.Title = &text.title
	}
	if !forge.SameText(text.Body, oldBody) {
		edit.Body = &text.Body
	}
	if edit == (forge.PullRequestUpdate{}) {
		return nil
	}
	pull, err := f.Repo.UpdatePullRequest(ctx, out.Pull.Number, edit)
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("Pull request #%d cannot be updated", out.Pull.Number), err)
	}
	out.Pull = pull
	return nil
}

// explainUnopenedPull adds to an error that the branch is pushed, and how to open the pull request by hand.
func (f Forge) explainUnopenedPull(err error, p *Proposal, text pullText) error {
	stop, ok := err.(*outcome.Stop)
	if !ok {
		return err
	}
	full := *stop
	full.Message += fmt.Sprintf(" The change is pushed to the branch %s; ", p.Task.Branch) + f.describeManualPull(p, text.title)
	return &full
}

// describeManualPull explains how to open the pull request by hand. In GitHub Actions it gives an address,
// because the step's files are deleted when a person reads this.
func (f Forge) describeManualPull(p *Proposal, title string) string {
	if f.Env.InActions() {
		return fmt.Sprintf("once that is allowed the same event opens the pull request, or by hand: %s/%s/compare/%s...%s?expand=1",
			f.ServerURL, f.Name(), url.PathEscape(p.Base.Branch), url.PathEscape(p.Task.Branch))
	}
	draft := ""
	if p.isDraft() {
		draft = " --draft"
	}
	file := f.Record.Join(record.PullRequestFile)
	return fmt.Sprintf("the body lies in %s; by hand: gh pr create --repo %s --base %s --head %s --title %s --body-file %s%s",
		file, f.Name(), p.Base.Branch, p.Task.Branch, shellword.Quote(title), shellword.Quote(file), draft)
}
