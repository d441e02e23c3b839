package publish

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// closedMark begins the body of a pull request that a run closed, so that it
// does not count as one that a person closed.
const closedMark = "<!-- agent-ci: closed "

func closedMarkOf(pull *forge.PullRequest) string { return closedMark + pull.HeadSHA + " -->" }

// closedByRun says whether a run closed the pull request, at the commit that it
// has. The mark stays when a person opens it again: who closed it last counts too.
func (f Forge) closedByRun(ctx context.Context, pull *forge.PullRequest) (bool, error) {
	if !strings.HasPrefix(pull.Body, closedMarkOf(pull)) {
		return false, nil
	}
	issue, err := f.repository().Issue(ctx, pull.Number)
	if err != nil {
		return false, intake.ForgeFailure(fmt.Sprintf("Who closed pull request #%d cannot be asked for", pull.Number), err)
	}
	return intake.OwnComments(ctx, f.Server)(forge.Comment{Author: issue.ClosedBy}), nil
}

// openedAgain takes the mark away from a pull request that a person opened
// again: closed another time, it is closed by a person, whose token the run may
// have.
func (f Forge) openedAgain(ctx context.Context, pull *forge.PullRequest) error {
	if !strings.HasPrefix(pull.Body, closedMark) {
		return nil
	}
	_, body, _ := strings.Cut(pull.Body, "-->")
	body = strings.TrimLeft(body, "\r\n")
	if _, err := f.repository().UpdatePullRequest(ctx, pull.Number, forge.PullRequestUpdate{Body: &body}); err != nil {
		return intake.ForgeFailure(fmt.Sprintf("Pull request #%d, which was opened again, cannot be updated", pull.Number), err)
	}
	return nil
}

// closePull closes the open pull request of a task that a later run found nothing to
// change for. One that holds a person's commit is left alone.
func (f Forge) closePull(ctx context.Context, p *Proposal, out *Publication) error {
	branch := p.Task.Branch
	if p.Job.Task.Expects == "answer" || p.Stopped != nil || branch == "" || p.Task.Mode == intake.Join {
		return nil
	}
	pull, err := f.openPull(ctx, p)
	if err != nil || pull == nil {
		return err
	}
	before, err := f.tip(ctx, branch)
	if err != nil {
		return err
	}
	if before == nil || !before.Ours() {
		f.Record.Warn("pull_request_kept", "Pull request #%d stays open although there is nothing left to change: its branch %s does not end in a commit of a run.", pull.Number, branch)
		return nil
	}
	if err := f.tellWhyClosed(ctx, p, pull); err != nil {
		return err
	}
	state, body := "closed", closedMarkOf(pull)+"\n"+pull.Body
	closed, err := f.repository().UpdatePullRequest(ctx, pull.Number, forge.PullRequestUpdate{State: &state, Body: &body})
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("Pull request #%d cannot be closed", pull.Number), err)
	}
	out.Pull, out.Operation = closed, "closed"
	return f.recordPull(branch, before.SHA, out)
}

// tellWhyClosed comments on the pull request, unless a run that was killed did
// so already.
func (f Forge) tellWhyClosed(ctx context.Context, p *Proposal, pull *forge.PullRequest) error {
	issue, err := f.repository().Issue(ctx, pull.Number)
	if err != nil {
		return intake.ForgeFailure(fmt.Sprintf("The comments of pull request #%d cannot be read", pull.Number), err)
	}
	mark := closedMarkOf(pull)
	for _, comment := range issue.Comments {
		if strings.HasPrefix(comment.Body, mark) {
			return nil
		}
	}
	why := "ended without a change"
	if p.inBase() {
		why = "ended with a change that the base has already"
	}
	run := markdown.Link{Name: markdown.Code(p.RunID), Address: f.site().Page(f.Env.RunLink())}
	base := markdown.Link{Name: markdown.Code(gitops.Short(p.Base.SHA)), Address: f.site().Commit(p.Base.SHA)}
	text := fmt.Sprintf("%s\nClosed: a later run of this task (%s) %s on %s at %s, so that nothing is left to merge. The branch stays; when there is a change again, a new pull request is opened.",
		mark, run, why, markdown.Code(p.Base.Branch), base)
	if _, err := f.repository().CreateComment(ctx, pull.Number, text); err != nil {
		f.Record.Warn("pull_request_comment", "Why pull request #%d was closed could not be said there: %v", pull.Number, err)
	}
	return nil
}
