package publish

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// ownComments returns earlier runs' comments that continue the body, oldest first. Anybody can write the
// mark. So the author must be the pull request's author, a bot, or the token's account.
func (f Forge) ownComments(ctx context.Context, pull *forge.PullRequest) ([]forge.Comment, error) {
	own := intake.ByAppOrTokenAccount(ctx, f.Forge)
	return f.commentsWith(ctx, pull, body.CommentMark, func(c forge.Comment) bool {
		return c.Author.ID != 0 && c.Author.ID == pull.Author.ID || own(c)
	})
}

// commentsWith returns the comments of trusted authors that begin with a mark, oldest first.
func (f Forge) commentsWith(ctx context.Context, pull *forge.PullRequest, mark string, trusted func(forge.Comment) bool) ([]forge.Comment, error) {
	all, err := f.Repo.Comments(ctx, pull.Number)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(c forge.Comment) bool { return !strings.HasPrefix(c.Body, mark) || !trusted(c) }), nil
}

// syncComments edits, adds and deletes comments until they match the wanted text. If that fails, it returns
// another text, whose body needs no comments and is marked unfinished.
func (f Forge) syncComments(ctx context.Context, p *Proposal, wanted pullText, out *Publication) pullText {
	var existing []forge.Comment // of earlier runs
	var err error
	if out.Operation != "created" {
		existing, err = f.ownComments(ctx, out.Pull)
	}
	if err == nil {
		err = f.replaceComments(ctx, out.Pull, existing, wanted.Comments)
	}
	if err == nil {
		return wanted
	}
	f.Record.Warn("comment_not_written", "The transcript could not be continued in comments: %v", err)
	withoutComments, err := f.describe(p, f.finishedBodyOptions(p, out.Commit, 0), out)
	if err != nil {
		f.Record.Warn("comment_not_written", "The text of the pull request refers to missing comments: %v", err)
		withoutComments = wanted
	}
	withoutComments.Body = markUnfinished(withoutComments.Body, out.Commit, intake.UncommentedMark)
	return withoutComments
}

// replaceComments edits, adds and deletes comments until the wanted texts are there, in order. existing are
// the earlier comments. It stops at the first error.
func (f Forge) replaceComments(ctx context.Context, pull *forge.PullRequest, existing []forge.Comment, wanted []string) (err error) {
	for i, text := range wanted {
		switch {
		case i >= len(existing):
			_, err = f.Repo.CreateComment(ctx, pull.Number, text)
		case !forge.SameText(existing[i].Body, text):
			err = f.Repo.EditComment(ctx, existing[i].ID, text)
		}
		if err != nil {
			return err
		}
	}
	for _, surplus := range existing[min(len(wanted), len(existing)):] {
		if f.Repo.DeleteComment(ctx, surplus.ID) == nil {
			continue
		}
		if err := f.Repo.EditComment(ctx, surplus.ID, deletedCommentText); err != nil {
			return err
		}
	}
	return nil
}

// deletedCommentText replaces the text of a comment that the forge does not delete.
const deletedCommentText = body.CommentMark + "\n*The transcript of the last run is shorter: nothing of it is here.*\n"
