package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
)

// input is what people wrote for a task, as it was when it was asked for.
type input struct {
	title   string
	parts   []clean.Part // as written
	removed clean.Removed
}

// digest names the input: the same words of the same people have the same.
func (in *input) digest() (string, error) {
	raw, err := json.Marshal(struct {
		Title string
		Parts []clean.Part
	}{in.title, in.parts})
	if err != nil {
		return "", fmt.Errorf("encode the task's input: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// text is the input for the model: what can be seen, marked where more than one
// part could be taken for another.
func (in *input) text() string {
	parts := make([]clean.Part, 0, len(in.parts))
	for _, p := range in.parts {
		cleaned, removed := clean.Text(p.Text)
		in.removed.Add(removed)
		if cleaned != "" {
			parts = append(parts, clean.Part{Kind: p.Kind, Author: p.Author, Text: cleaned})
		}
	}
	if len(parts) == 1 && parts[0].Kind == "issue" && !clean.HoldsMark(parts[0].Text) {
		return parts[0].Text
	}
	return clean.Marked(parts)
}

// takeInput makes the task's words of an input, and tells what was left out of
// it.
func (r *run) takeInput(in input, where string) error {
	digest, err := in.digest()
	if err != nil {
		return err
	}
	title, removed := clean.Text(in.title)
	in.removed.Add(removed)
	r.task.title, r.task.text, r.task.snapshot = strings.Join(strings.Fields(title), " "), in.text(), digest
	if in.removed.Any() {
		r.rec.Warn("hidden_text", "%s held what its page does not show, which was removed: %s, %s.", where,
			counted(in.removed.Characters, "invisible character"), counted(in.removed.Comments, "HTML comment"))
	}
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// readEventTask takes the task from the event: its texts are those of the moment
// when it was asked for, whatever was written since.
func (r *run) readEventTask(ctx context.Context) error {
	q := r.request
	r.task = task{source: "event", name: "event " + r.event.Name, trigger: q.Trigger, actor: q.Actor.Login, actorID: q.Actor.ID}
	if q.Prompt != "" {
		return r.takeInput(input{parts: []clean.Part{{Kind: "request", Text: q.Prompt}}}, "The event")
	}
	if q.OnPull {
		return r.readPullTask(ctx)
	}
	ref := job.Issue{Repository: r.eventRepository().Name(), Number: q.Number}
	issue, err := r.openIssue(ctx, ref)
	if err != nil {
		return err
	}
	in, err := r.issueInput(ctx, ref, issue)
	if err != nil {
		return err
	}
	if q.Words != "" {
		in.parts = append(in.parts, clean.Part{Kind: "request", Author: q.Actor.Login, Text: q.Words})
	}
	r.adoptIssue(ref, issue)
	return r.takeInput(in, ref.String())
}

func (r *run) adoptIssue(ref job.Issue, issue *forge.Issue) {
	r.task.name, r.task.url, r.task.issue, r.task.author = "issue "+ref.String(), issue.URL, &ref, &issue.Author
}

// issueInput is an issue as it was at the trigger, with the comments that were
// there then and count.
func (r *run) issueInput(ctx context.Context, ref job.Issue, issue *forge.Issue) (input, error) {
	title, body := issue.Title, issue.Body
	if then := r.asItWas(ref); then != nil {
		if title, body = then.Title, then.Body; title != issue.Title || body != issue.Body {
			r.rec.Warn("edited_after_trigger", "%s was edited after it was asked for; what stood there then was used.", ref)
		}
	}
	in := input{title: title, parts: []clean.Part{{Kind: "issue", Author: issue.Author.Login, Text: body}}}
	comments, err := r.commentsThatCount(ctx, ref, issue)
	in.parts = append(in.parts, comments...)
	return in, err
}

// asItWas is an issue as the event has it that started the workflow; nil when the
// event is about something else. That the job names the issue itself changes
// nothing: somebody's label or comment asked for it.
func (r *run) asItWas(ref job.Issue) *actions.Issue {
	switch q := r.request; {
	case q != nil && q.OnPull:
		return nil
	case q != nil:
		return q.Issue
	case r.event == nil || r.event.Issue == nil || !r.env.InActions():
		return nil
	case r.event.Issue.Number != ref.Number || !strings.EqualFold(ref.Repository, r.env.Get("GITHUB_REPOSITORY")):
		return nil
	}
	return r.event.Issue
}

// commentsThatCount are the comments of who is trusted, and the questions of
// earlier runs, that were there when the task was asked for and were not edited
// since.
func (r *run) commentsThatCount(ctx context.Context, ref job.Issue, issue *forge.Issue) ([]clean.Part, error) {
	var kept []clean.Part
	repository, asked := r.forge.Repository(ref.Repository), r.ownQuestions(ctx)
	late, untrusted := 0, 0
	for _, c := range issue.Comments {
		switch {
		case isProgress(c):
			r.progressLike = append(r.progressLike, c)
			continue
		case strings.HasPrefix(c.Body, joinMark), strings.HasPrefix(c.Body, body.CommentMark), r.request != nil && c.ID == r.request.WordsID:
			continue // told by a run, or what asked for this one
		case r.afterTrigger(c.CreatedAt), r.afterTrigger(c.UpdatedAt):
			late++
			continue
		case asked(c):
			kept = append(kept, clean.Part{Kind: "question", Author: c.Author.Login, Text: strings.TrimPrefix(c.Body, questionsMark)})
			continue
		}
		counts, err := r.commentCounts(ctx, repository, c)
		if err != nil {
			return nil, forgeFailure("The role of "+c.Author.Login+" cannot be asked for", err)
		}
		if !counts {
			untrusted++
			continue
		}
		kept = append(kept, clean.Part{Kind: "comment", Author: c.Author.Login, Text: strings.TrimPrefix(c.Body, questionsMark)})
	}
	if issue.MoreComments > 0 {
		r.rec.Warn("comments_not_read", "%s on %s were not read: only the first %d are.", counted(issue.MoreComments, "comment"), ref, forge.MaxComments)
	}
	if untrusted > 0 {
		r.rec.Warn("comments_left_out", "%s on %s were not read: their authors are not trusted (trust.comments, trust.roles).", counted(untrusted, "comment"), ref)
	}
	if late > 0 {
		r.rec.Warn("comments_after_trigger", "%s on %s were not read: they were written or edited after it was asked for.", counted(late, "comment"), ref)
	}
	return kept, nil
}

func (r *run) afterTrigger(at time.Time) bool {
	return !r.askedAt.IsZero() && at.After(r.askedAt)
}

// knownAssociations are relations to a repository by which somebody plainly may
// have a role in it (GraphQL's CommentAuthorAssociation). Others may have one too:
// who keeps a membership to themselves is shown as a contributor.
var knownAssociations = []string{"OWNER", "MEMBER", "COLLABORATOR"}

// mostAsked is up to how many accounts strangers' roles are asked for: an issue
// that many wrote on must not use up the calls that the run needs.
const mostAsked = 30

// commentCounts asks for the role of the author, as for who asks for a run. A
// person who names an issue may have no token that can ask: the repository's
// owner is known without.
func (r *run) commentCounts(ctx context.Context, in forge.Repository, c forge.Comment) (bool, error) {
	owns := c.Association == "OWNER" && !c.Author.Bot
	switch trusted := r.job.Trust.Comments; {
	case trusted != "trusted":
		return trusted == "all", nil
	case c.Author.Bot:
	case r.env.Token() == "":
		return owns, nil
	case !slices.Contains(knownAssociations, c.Association) && len(r.permissions) >= mostAsked:
		return false, nil
	}
	why, err := r.distrust(ctx, in, c.Author)
	if kind := forge.KindOf(err); r.request == nil && (kind == forge.Forbidden || kind == forge.Unauthorized) {
		return owns, nil
	}
	return why == "" && err == nil, err
}

// openIssue reads an issue that can be worked on.
func (r *run) openIssue(ctx context.Context, ref job.Issue) (*forge.Issue, error) {
	issue, err := r.forge.Repository(ref.Repository).Issue(ctx, ref.Number)
	if err != nil {
		return nil, issueFailure(ref, err)
	}
	switch {
	case issue.PullRequest:
		return nil, outcome.Stopf(outcome.InvalidInput, "not_an_issue", "%s is a pull request; give the number of an issue.", ref)
	case issue.State != "open":
		return nil, outcome.Stopf(outcome.Skipped, "issue_closed", "The issue %s is closed; reopen it to have it worked on: %s.", ref, issue.URL)
	}
	return issue, nil
}
