package runner

import (
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// ownComments are those that earlier runs continued the body in, oldest first.
// The mark alone proves nothing, since anybody can write it: the author must be
// the pull request's own, or a bot, for runs with another token.
func (r *run) ownComments(ctx context.Context, pull *github.PullRequest) ([]github.Comment, error) {
	all, err := r.forge.Comments(ctx, r.repo.owner, r.repo.name, pull.Number)
	if err != nil {
		return nil, err
	}
	var own []github.Comment
	for _, c := range all {
		if strings.HasPrefix(c.Body, transcript.CommentMark) && (c.Author.Bot || c.Author.ID == pull.Author.ID) {
			own = append(own, c)
		}
	}
	return own, nil
}

// putComments makes the comments those of the posts: the ones that are there are
// edited where they differ, more are written below, and what is left of a longer
// transcript is deleted. Where that fails, the posts are a body that stands alone
// and is unfinished.
func (r *run) putComments(ctx context.Context, pull *github.PullRequest, there []github.Comment, posts transcript.Posts) transcript.Posts {
	err := r.writeComments(ctx, pull.Number, there, posts.Comments)
	if err == nil {
		return posts
	}
	r.warn("pull_request_comments", "The transcript does not go on in comments: %v", err)
	alone, err := r.bodyAlone()
	if err != nil {
		r.warn("pull_request_comments", "The body speaks of comments that are not there: %v", err)
		alone = posts.Body
	}
	return transcript.Posts{Body: unfinished(alone, r.published.commit)}
}

func (r *run) writeComments(ctx context.Context, number int, there []github.Comment, wanted []string) error {
	owner, name := r.repo.owner, r.repo.name
	for i, text := range wanted {
		var err error
		switch {
		case i >= len(there):
			_, err = r.forge.CreateComment(ctx, owner, name, number, text)
		case strings.ReplaceAll(there[i].Body, "\r\n", "\n") != text:
			err = r.forge.EditComment(ctx, owner, name, there[i].ID, text)
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
const emptied = transcript.CommentMark + "\n*The transcript of the last run is shorter: nothing of it is here.*\n"

func (r *run) dropComment(ctx context.Context, id int64) error {
	if r.forge.DeleteComment(ctx, r.repo.owner, r.repo.name, id) == nil {
		return nil
	}
	return r.forge.EditComment(ctx, r.repo.owner, r.repo.name, id, emptied)
}
