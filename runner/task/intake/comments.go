package intake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
)

// trustedComments returns the comments of trusted authors and the questions of earlier runs. It
// omits comments written or edited after askedAt. progress holds the comments that look like the
// progress of runs.
func (s *Source) trustedComments(ctx context.Context, ref form.Issue, issue *forge.Issue, askedAt time.Time) (parts []clean.Part, progress []forge.Comment, err error) {
	repository, isQuestion := s.Forge.Repository(ref.Repository), s.ownQuestions(ctx)
	late, untrusted := 0, 0
	for _, c := range issue.Comments {
		switch {
		case IsProgress(c):
			progress = append(progress, c)
		case s.isRequestOrReport(c): // left out
		case isAfter(askedAt, c.CreatedAt, c.UpdatedAt):
			late++
		case isQuestion(c):
			parts = append(parts, partOfComment("question", c))
		default:
			trusted, err := s.isTrustedComment(ctx, repository, c)
			if err != nil {
				return nil, nil, err
			}
			if !trusted {
				untrusted++
				continue
			}
			parts = append(parts, partOfComment("comment", c))
		}
	}
	s.warnOfComments(ref, issue.MoreComments, untrusted, late)
	return parts, progress, nil
}

func partOfComment(kind string, c forge.Comment) clean.Part {
	return clean.Part{Kind: kind, Author: c.Author.Login, Text: strings.TrimPrefix(c.Body, QuestionsMark)}
}

// isRequestOrReport reports whether a comment requested this run, or is a run's own report.
func (s *Source) isRequestOrReport(c forge.Comment) bool {
	isRequest := s.Request != nil && c.ID == s.Request.WordsID
	hasPrefix := func(mark string) bool { return strings.HasPrefix(c.Body, mark) }
	return isRequest || slices.ContainsFunc([]string{JoinMark, RepairMark, body.CommentMark, feedbackStart}, hasPrefix)
}

// isAfter reports whether any of the times is after askedAt, the time of the request.
func isAfter(askedAt time.Time, times ...time.Time) bool {
	return !askedAt.IsZero() && slices.ContainsFunc(times, askedAt.Before)
}

// warnOfComments warns about comments that the task lacks: too many, by untrusted authors, or too late.
func (s *Source) warnOfComments(ref form.Issue, unread, untrusted, late int) {
	if unread > 0 {
		s.Record.Warn("comments_not_read", "%s on %s were not read: only the first %d are.", transcript.CountNoun(unread, "comment"), ref, forge.MaxComments)
	}
	if untrusted > 0 {
		s.Record.Warn("comments_left_out", "%s on %s were not read: their authors are not trusted (trust.comments, trust.roles).", transcript.CountNoun(untrusted, "comment"), ref)
	}
	if late > 0 {
		s.Record.Warn("comments_after_trigger", "%s on %s were not read: they were written or edited after the request.", transcript.CountNoun(late, "comment"), ref)
	}
}

// knownAssociations lists the associations that may include a role in the repository (GraphQL's
// CommentAuthorAssociation). Other accounts may have one too: GitHub shows a private member as a
// contributor.
var knownAssociations = []string{"OWNER", "MEMBER", "COLLABORATOR"}

// maxRoleLookups limits the role look-ups for accounts without a known association. An issue with many
// authors must not use up the API calls of the run.
const maxRoleLookups = 30

// isTrustedComment reports whether the model may see the comment, by trust.comments and the author's role.
// Without permission to look up roles, only comments of the repository's owner count.
func (s *Source) isTrustedComment(ctx context.Context, repository forge.Repository, c forge.Comment) (trusted bool, err error) {
	if setting := s.Job.Trust.Comments; setting != "trusted" {
		return setting == "all", nil
	}
	isPerson := !c.Author.Bot // trust.bots decides on bots
	byOwner := isPerson && c.Association == "OWNER"
	if isPerson && !s.Event.HasToken {
		return byOwner, nil
	}
	isKnown := slices.Contains(knownAssociations, c.Association)
	if isPerson && !isKnown && len(s.Permissions) >= maxRoleLookups {
		return false, nil
	}
	why, err := s.DistrustReason(ctx, repository, c.Author)
	kind := forge.KindOf(err)
	lookUpForbidden := kind == forge.Forbidden || kind == forge.Unauthorized
	switch {
	case lookUpForbidden && s.Request == nil:
		return byOwner, nil
	case err != nil:
		return false, err
	}
	return why == "", nil
}

// ownQuestions returns a function that recognises the questions of an earlier run, because later
// answers mean little without them. The questions reach the model as text, so their author must be
// the token's account: another bot's comment does not count.
func (s *Source) ownQuestions(ctx context.Context) func(forge.Comment) bool {
	if !s.Event.HasToken || s.Job.Trust.Comments == "none" {
		return func(forge.Comment) bool { return false }
	}
	isOwn := ByTokenAccount(ctx, s.Forge)
	return func(c forge.Comment) bool { return strings.HasPrefix(c.Body, QuestionsMark) && isOwn(c) }
}

// ByTokenAccount returns a function that recognises comments of the token's account, App or not.
func ByTokenAccount(ctx context.Context, client forge.Forge) func(forge.Comment) bool {
	return byAccount(func() (string, error) { return client.ActingAs(ctx) })
}

// ByAppOrTokenAccount returns a function that recognises comments of any App and of the token's own
// account. It asks for the account once. An App's token belongs to no account.
func ByAppOrTokenAccount(ctx context.Context, client forge.Forge) func(forge.Comment) bool {
	isOwn := byAccount(func() (string, error) {
		viewer, err := client.Viewer(ctx)
		return viewer.Login, err
	})
	return func(c forge.Comment) bool { return c.Author.Bot || isOwn(c) }
}

// byAccount returns a function that recognises comments of the account returned by ask. It calls
// ask once, for the first comment. If ask fails, no comment matches.
func byAccount(ask func() (login string, err error)) func(forge.Comment) bool {
	account := sync.OnceValues(ask)
	return func(c forge.Comment) bool {
		login, err := account()
		return err == nil && login != "" && strings.EqualFold(c.Author.Login, login)
	}
}

// OwnProgress returns the progress comment of an earlier run: the last one by an App or the token's
// own account, or nil. It ignores similar comments of people.
func OwnProgress(ctx context.Context, client forge.Forge, all []forge.Comment) *forge.Comment {
	isOwn := ByAppOrTokenAccount(ctx, client)
	for i, c := range slices.Backward(all) {
		if IsProgress(c) && isOwn(c) {
			return &all[i]
		}
	}
	return nil
}
