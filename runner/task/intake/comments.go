package intake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
)

// commentsThatCount are the comments of who is trusted, and the questions of
// earlier runs, that were there when the task was asked for and were not edited
// since. Beside them come those that look like the progress of runs.
func (s *Source) commentsThatCount(ctx context.Context, ref form.Issue, issue *forge.Issue, askedAt time.Time) (kept []clean.Part, progress []forge.Comment, err error) {
	in, isQuestion := s.Forge.Repository(ref.Repository), s.ownQuestions(ctx)
	late, untrusted := 0, 0
	for _, c := range issue.Comments {
		switch {
		case IsProgress(c):
			progress = append(progress, c)
		case s.asksOrTells(c):
		case isAfter(askedAt, c.CreatedAt, c.UpdatedAt):
			late++
		case isQuestion(c):
			kept = append(kept, commentPart("question", c))
		default:
			counts, err := s.commentCounts(ctx, in, c)
			if err != nil {
				return nil, nil, err
			}
			if !counts {
				untrusted++
				continue
			}
			kept = append(kept, commentPart("comment", c))
		}
	}
	s.warnOfComments(ref, issue.MoreComments, untrusted, late)
	return kept, progress, nil
}

func commentPart(kind string, c forge.Comment) clean.Part {
	return clean.Part{Kind: kind, Author: c.Author.Login, Text: strings.TrimPrefix(c.Body, QuestionsMark)}
}

// asksOrTells says of a comment that it asked for this run, or that a run told
// there what it did.
func (s *Source) asksOrTells(c forge.Comment) bool {
	return strings.HasPrefix(c.Body, JoinMark) || strings.HasPrefix(c.Body, RepairMark) || strings.HasPrefix(c.Body, body.CommentMark) || IsFeedback(c.Body) || s.Request != nil && c.ID == s.Request.WordsID
}

// isAfter says whether any of the times is later than the task was asked for.
func isAfter(askedAt time.Time, times ...time.Time) bool {
	return !askedAt.IsZero() && slices.ContainsFunc(times, askedAt.Before)
}

func (s *Source) warnOfComments(ref form.Issue, more, untrusted, late int) {
	if more > 0 {
		s.Record.Warn("comments_not_read", "%s on %s were not read: only the first %d are.", outcome.Counted(more, "comment"), ref, forge.MaxComments)
	}
	if untrusted > 0 {
		s.Record.Warn("comments_left_out", "%s on %s were not read: their authors are not trusted (trust.comments, trust.roles).", outcome.Counted(untrusted, "comment"), ref)
	}
	if late > 0 {
		s.Record.Warn("comments_after_trigger", "%s on %s were not read: they were written or edited after it was asked for.", outcome.Counted(late, "comment"), ref)
	}
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
func (s *Source) commentCounts(ctx context.Context, in forge.Repository, c forge.Comment) (bool, error) {
	owns := c.Association == "OWNER" && !c.Author.Bot
	switch trusted := s.Job.Trust.Comments; {
	case trusted != "trusted":
		return trusted == "all", nil
	case c.Author.Bot:
	case !s.Event.HasToken:
		return owns, nil
	case !slices.Contains(knownAssociations, c.Association) && len(s.Accounts) >= mostAsked:
		return false, nil
	}
	why, err := s.distrust(ctx, in, c.Author)
	if kind := forge.KindOf(err); s.Request == nil && (kind == forge.Forbidden || kind == forge.Unauthorized) {
		return owns, nil
	}
	return why == "" && err == nil, err
}

// ownQuestions says of comments whether they hold the questions of an earlier run,
// without which the answers below say little. They are text for the model, so that
// another bot's do not pass for them: the account must be the token's.
func (s *Source) ownQuestions(ctx context.Context) func(forge.Comment) bool {
	if !s.Event.HasToken || s.Job.Trust.Comments == "none" {
		return func(forge.Comment) bool { return false }
	}
	own := TokensComments(ctx, s.Forge)
	return func(c forge.Comment) bool { return strings.HasPrefix(c.Body, QuestionsMark) && own(c) }
}

// TokensComments says of comments whether they are of the account that the token acts
// under, and of no other, App or not.
func TokensComments(ctx context.Context, on forge.Forge) func(forge.Comment) bool {
	return ofAccount(func() (string, error) { return on.ActingAs(ctx) })
}

// OwnComments says of comments whether they are an App's or of the token's own
// account, which is asked for once. The token of an App belongs to nobody.
func OwnComments(ctx context.Context, on forge.Forge) func(forge.Comment) bool {
	own := ofAccount(func() (string, error) {
		viewer, err := on.Viewer(ctx)
		return viewer.Login, err
	})
	return func(c forge.Comment) bool { return c.Author.Bot || own(c) }
}

// ofAccount says of comments whether their author is the account that ask gives.
// It asks once, for the first comment. An account that cannot be known wrote none.
func ofAccount(ask func() (login string, err error)) func(forge.Comment) bool {
	account := sync.OnceValues(ask)
	return func(c forge.Comment) bool {
		login, err := account()
		return err == nil && login != "" && strings.EqualFold(c.Author.Login, login)
	}
}

// OwnProgress is the comment with the progress of an earlier run: the last of an App or of the token's
// own account, nil for none. A person's that looks like one stays as it is.
func OwnProgress(ctx context.Context, on forge.Forge, all []forge.Comment) *forge.Comment {
	own := OwnComments(ctx, on)
	for i, c := range slices.Backward(all) {
		if IsProgress(c) && own(c) {
			return &all[i]
		}
	}
	return nil
}
