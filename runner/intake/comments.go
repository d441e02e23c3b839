package intake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
)

// comments are what is of use of those on an issue or pull request.
type comments struct {
	parts    []clean.Part
	progress []forge.Comment // of runs, as it seems
}

// commentsThatCount are the comments of who is trusted, and the questions of
// earlier runs, that were there when the task was asked for and were not edited
// since.
func (s *Source) commentsThatCount(ctx context.Context, ref job.Issue, issue *forge.Issue, askedAt time.Time) (comments, error) {
	var kept comments
	in, isQuestion := s.Forge.Repository(ref.Repository), s.ownQuestions(ctx)
	late, untrusted := 0, 0
	for _, c := range issue.Comments {
		switch {
		case IsProgress(c):
			kept.progress = append(kept.progress, c)
			continue
		case s.asksOrTells(c):
			continue
		case isAfter(askedAt, c.CreatedAt, c.UpdatedAt):
			late++
			continue
		}
		kind, counts, err := s.weigh(ctx, in, c, isQuestion)
		switch {
		case err != nil:
			return kept, err
		case counts:
			kept.parts = append(kept.parts, clean.Part{Kind: kind, Author: c.Author.Login, Text: strings.TrimPrefix(c.Body, QuestionsMark)})
		default:
			untrusted++
		}
	}
	s.warnOfComments(ref, issue.MoreComments, untrusted, late)
	return kept, nil
}

// asksOrTells says of a comment that it asked for this run, or that a run told
// there what it did.
func (s *Source) asksOrTells(c forge.Comment) bool {
	return strings.HasPrefix(c.Body, JoinMark) || strings.HasPrefix(c.Body, body.CommentMark) || s.Request != nil && c.ID == s.Request.WordsID
}

// isAfter says whether any of the times is later than the task was asked for.
func isAfter(askedAt time.Time, times ...time.Time) bool {
	return !askedAt.IsZero() && slices.ContainsFunc(times, askedAt.Before)
}

// weigh says what a comment is to the task, and whether it counts.
func (s *Source) weigh(ctx context.Context, in forge.Repository, c forge.Comment, isQuestion func(forge.Comment) bool) (kind string, counts bool, err error) {
	if isQuestion(c) {
		return "question", true, nil
	}
	counts, err = s.commentCounts(ctx, in, c)
	return "comment", counts, err
}

func (s *Source) warnOfComments(ref job.Issue, more, untrusted, late int) {
	if more > 0 {
		s.Record.Warn("comments_not_read", "%s on %s were not read: only the first %d are.", counted(more, "comment"), ref, forge.MaxComments)
	}
	if untrusted > 0 {
		s.Record.Warn("comments_left_out", "%s on %s were not read: their authors are not trusted (trust.comments, trust.roles).", counted(untrusted, "comment"), ref)
	}
	if late > 0 {
		s.Record.Warn("comments_after_trigger", "%s on %s were not read: they were written or edited after it was asked for.", counted(late, "comment"), ref)
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
	case !slices.Contains(knownAssociations, c.Association) && s.Accounts.asked() >= mostAsked:
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
	account := sync.OnceValue(func() string {
		login, _ := s.Forge.ActingAs(ctx) // not to know is to leave them out
		return login
	})
	return func(c forge.Comment) bool {
		return strings.HasPrefix(c.Body, QuestionsMark) && isAccount(account(), c.Author)
	}
}

func isAccount(login string, who forge.User) bool {
	return login != "" && strings.EqualFold(who.Login, login)
}

// OwnComments says of comments whether they are an App's or of the token's own
// account, which is asked for once.
func OwnComments(ctx context.Context, on forge.Forge) func(forge.Comment) bool {
	account := sync.OnceValue(func() string {
		viewer, _ := on.Viewer(ctx) // an App's token belongs to nobody
		return viewer.Login
	})
	return func(c forge.Comment) bool { return c.Author.Bot || isAccount(account(), c.Author) }
}

// OwnProgress is the comment of an earlier run among those that look like one: the
// last of an App or of the token's own account, nil for none. A person's that looks
// like one stays as it is.
func OwnProgress(ctx context.Context, on forge.Forge, like []forge.Comment) *forge.Comment {
	own := OwnComments(ctx, on)
	for i, c := range slices.Backward(like) {
		if own(c) {
			return &like[i]
		}
	}
	return nil
}
