package runner

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
)

// ownComments are those that earlier runs continued the body in, oldest first.
// The mark alone proves nothing, since anybody can write it: the author must be
// the pull request's own, a bot, or the account of the token.
func (r *run) ownComments(ctx context.Context, pull *forge.PullRequest) ([]forge.Comment, error) {
	all, err := r.repo.Comments(ctx, pull.Number)
	if err != nil {
		return nil, err
	}
	viewer := sync.OnceValue(func() int64 {
		us, _ := r.forge.Viewer(ctx) // the token of an App belongs to nobody, and its comments are a bot's
		return us.ID
	})
	return slices.DeleteFunc(all, func(c forge.Comment) bool {
		if !strings.HasPrefix(c.Body, body.CommentMark) {
			return true
		}
		who := c.Author
		return !who.Bot && (who.ID == 0 || who.ID != pull.Author.ID && who.ID != viewer())
	}), nil
}

// noComments are those of a pull request that was opened just now.
func noComments(context.Context, *forge.PullRequest) ([]forge.Comment, error) { return nil, nil }

// putComments makes the comments that are there those of the posts: they are
// edited where they differ, more are written below, and what is left of a longer
// transcript is deleted. Where that fails, the posts are a body that stands alone,
// and is not finished.
func (r *run) putComments(ctx context.Context, pull *forge.PullRequest, read func(context.Context, *forge.PullRequest) ([]forge.Comment, error), posts body.Posts) body.Posts {
	there, err := read(ctx, pull)
	if err == nil {
		err = r.writeComments(ctx, pull.Number, there, posts.Comments)
	}
	if err == nil {
		return posts
	}
	r.rec.Warn("pull_request_comments", "The transcript does not go on in comments: %v", err)
	alone, err := r.bodyAlone()
	if err != nil {
		r.rec.Warn("pull_request_comments", "The body speaks of comments that are not there: %v", err)
		alone = posts.Body
	}
	return body.Posts{Body: r.markedAs(alone, aloneMark)}
}

func (r *run) writeComments(ctx context.Context, number int, there []forge.Comment, wanted []string) error {
	for i, text := range wanted {
		var err error
		switch {
		case i >= len(there):
			_, err = r.repo.CreateComment(ctx, number, text)
		case !sameText(there[i].Body, text):
			err = r.repo.EditComment(ctx, there[i].ID, text)
		}
		if err != nil {
			return err
		}
	}
	for _, surplus := range there[min(len(wanted), len(there)):] {
		if err := r.dropComment(ctx, surplus.ID); err != nil {
			return err
		}
	}
	return nil
}

// emptied stands in a comment that could not be deleted.
const emptied = body.CommentMark + "\n*The transcript of the last run is shorter: nothing of it is here.*\n"

func (r *run) dropComment(ctx context.Context, id int64) error {
	if r.repo.DeleteComment(ctx, id) == nil {
		return nil
	}
	return r.repo.EditComment(ctx, id, emptied)
}
