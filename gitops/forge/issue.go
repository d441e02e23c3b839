package forge

import "time"

// MaxComments is how many comments of an issue or pull request are read, the
// oldest first.
const MaxComments = 1000

// MaxAttachment bounds an attached image in bytes, as GitHub does
// (https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/attaching-files).
const MaxAttachment = 10 << 20

// Issue is an issue with its comments. Where pull requests are numbered as
// issues, PullRequest tells them apart.
type Issue struct {
	Number      int
	Title       string
	Body        string
	State       string // open or closed
	URL         string
	PullRequest bool
	Author      User
	Association string // of the author: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, …, NONE
	Labels      []string
	CreatedAt   time.Time
	UpdatedAt   time.Time // of anything about it: text, labels, comments
	Comments    []Comment // oldest first, at most MaxComments
	// MoreComments counts unread comments.
	MoreComments int
}

// Comment is a comment of an issue or pull request.
type Comment struct {
	ID          int64
	Author      User
	Association string // as in Issue
	Body        string
	URL         string
	CreatedAt   time.Time
	UpdatedAt   time.Time // later than CreatedAt when it was edited
}

// ReviewComment is a comment on a line of a pull request's diff.
type ReviewComment struct {
	ID        int64
	ReviewID  int64 // of the review that it is part of
	Author    User
	Path      string
	Line      int // 0 when the line is gone
	DiffHunk  string
	Body      string
	CreatedAt time.Time
	UpdatedAt time.Time // later than CreatedAt when it was edited, or submitted with a review
}
