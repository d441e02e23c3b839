package forge

type PullRequest struct {
	Number int
	NodeID string // the server's own, where the number does not name it
	URL    string
	State  string // open or closed
	Draft  bool
	Merged bool
	// Mergeable is clean, [MergeableDirty] or another state, such as blocked, behind or unstable. It is
	// unknown while the server computes it, and "" in lists.
	Mergeable string
	Title     string
	Body      string
	Head      string // the branch that is to be merged
	HeadSHA   string
	// HeadRepository is the OWNER/NAME with Head, different for a fork, or "" if deleted.
	HeadRepository string
	Base           string // the branch that it is to be merged into
	Author         User
	Labels         []string
	Assignees      []string // logins
	Reviewers      []string // logins that are asked for a review and gave none yet
	Teams          []string // slugs, likewise
}

// NewPullRequest is a pull request to be created. Head and Base are branches of
// the repository; Head may be owner:branch for one of a fork.
type NewPullRequest struct {
	Title string
	Head  string
	Base  string
	Body  string
	Draft bool
}

// PullRequestUpdate changes the non-nil fields of a pull request.
type PullRequestUpdate struct {
	Title *string
	Body  *string
	State *string // open or closed
}
