package forgetest

import (
	"fmt"
	"time"
)

// ReviewComment is a comment on a line of a pull request's diff.
type ReviewComment struct {
	ReviewID       int64
	Author         User
	Path, DiffHunk string
	Line           int
	Body           string
}

type reviewComment struct {
	ReviewComment
	id      int64
	created time.Time
}

// AddReviewComment adds a comment on the diff of a pull request and gives its id.
func (r *Repository) AddReviewComment(number int, c ReviewComment) int64 {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	i := r.knownPull(number)
	added := &reviewComment{c, r.forge.newID(), r.forge.now()}
	i.pull.reviewComments = append(i.pull.reviewComments, added)
	return added.id
}

func listReviewComments(f *Forge, c *call) answer {
	return page(f, c, c.issue.pull.reviewComments, func(each *reviewComment) object {
		return f.showReviewComment(c.repository, c.issue, each)
	})
}

func (f *Forge) showReviewComment(r *Repository, i *issue, c *reviewComment) object {
	at := fmt.Sprintf("%s/pulls/comments/%d", f.apiURL(r), c.id)
	pull := fmt.Sprintf("%s/pulls/%d", f.apiURL(r), i.Number)
	page := fmt.Sprintf("%s/pull/%d#discussion_r%d", f.pageURL(r), i.Number, c.id)
	return object{
		"id": c.id, "node_id": fmt.Sprintf("PRRC_forgetest_%d", c.id), "pull_request_review_id": c.ReviewID,
		"url": at, "html_url": page, "pull_request_url": pull,
		"_links": object{"self": object{"href": at}, "html": object{"href": page}, "pull_request": object{"href": pull}},
		"path":   c.Path, "line": c.Line, "diff_hunk": c.DiffHunk, "side": "RIGHT", "subject_type": "line",
		"commit_id": i.pull.headSHA, "original_commit_id": i.pull.headSHA,
		"user": f.showUser(c.Author), "author_association": "MEMBER", "body": c.Body, "created_at": c.created, "updated_at": c.created,
	}
}
