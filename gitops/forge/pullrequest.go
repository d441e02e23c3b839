package forge

// PullRequest is a pull request with its branches and people.
type PullRequest struct {
	Number int
	NodeID string // the server's own id, for calls that do not take the number
	URL    string
	State  string // open or closed
	Draft  bool
	Merged bool
	// Mergeable is clean, [MergeableDirty] or another state, such as blocked, behind or unstable.
	// It is "unknown" while the server computes it, and "" in lists.
	Mergeable string
	Title     string
	Body      string
	Head      string // the branch to merge
	HeadSHA   string
	// HeadRepository is the OWNER/NAME that contains Head. It is another repository for a fork, and
	// "" if that was deleted.
	HeadRepository string
	Base           string // the branch to merge into
	Labels         []string
	People
}

// People are the author of a pull request, and those it asks to act.
type People struct {
	Author    User
	Assignees []string // logins
	Reviewers []string // logins of requested reviewers who have not reviewed yet
	Teams     []string // slugs of such teams
}

// NewPullRequest is a pull request to create. Head and Base are branches of the repository. For a
// branch of a fork, Head is owner:branch.
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
