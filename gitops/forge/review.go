package forge

import "time"

// MaxPullFiles is how many files of a pull request are read: GitHub lists no more
// (https://docs.github.com/rest/pulls/pulls#list-pull-requests-files).
const MaxPullFiles = 3000

// PullFile is a file that a pull request changes.
type PullFile struct {
	Path   string
	From   string // its path before, where it moved
	Status string // added, removed, modified, renamed, copied, changed, unchanged
	// Patch is the hunks of its diff, without a head; empty for a binary file, and for one
	// whose diff is too large for the server.
	Patch string
}

// Review is a review of a pull request.
type Review struct {
	ID        int64
	Author    User
	Body      string
	State     string // APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED, PENDING
	CommitSHA string // that was reviewed
	URL       string
	At        time.Time // when it was submitted
}

// NewReview is a review that comments and neither approves nor blocks.
type NewReview struct {
	CommitSHA string // whose diff the lines are of
	Body      string
	Comments  []LineComment
}

// LineComment is a comment on lines of the new side of a pull request's diff.
type LineComment struct {
	Path string
	Line int // the last one
	From int // the first one; 0 for Line alone
	Body string
}
