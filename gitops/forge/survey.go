package forge

// MaxSurvey is the largest number of questions in one request of Survey.
const MaxSurvey = 100

// Question is a question about one repository.
type Question struct {
	Repository string // OWNER/REPO
	Branch     string // "" for the default branch
	Commit     string // commit to look for in the branch; "" for none
	Issue      int    // 0 for none
	Head       string // branch whose open pull request is wanted; "" for none
	Pull       int    // pull request whose state is wanted; 0 for none
}

// Finding is the answer to a Question. A missing object is no error.
type Finding struct {
	Found      bool   // the repository exists, and the token can see it
	Repository string // its current name
	Archived   bool
	CanWrite   bool   // the token's account may push, or this is unknown
	Branch     string // the branch of the question, or the default branch
	Tip        string // commit of Branch; "" if the branch does not exist
	HasCommit  bool   // the branch has the commit
	IssueState string // open or closed; "" if there is no such issue
	Open       string // URL of an open pull request of the question's Head; "" for none
	PullState  string // open, merged or closed; "" if there is no such pull request
	PullHead   string // commit of the pull request's branch
}

// MaxFound is the largest number of results of a search for words, as a limit of the forge.
const MaxFound = 1000

// Search selects issues if Issues or Labels is set, repositories with matching files if Code is
// set, and otherwise repositories.
type Search struct {
	Organisation string // account that owns the repositories; "" for any
	Topic        string
	Code         string
	Issues       string
	Labels       []string
	// Heads is a prefix of branch names. The search reports the open pull requests of these
	// branches, if it can.
	Heads string
}

// Hit is a repository or issue that a search found.
type Hit struct {
	Repository string
	Issue      int // 0 for a repository
	// Finding is information about the repository's default branch, or nil if the search has none.
	Finding *Finding
	Open    map[string]string // URLs of open pull requests of branches that begin with Heads, by branch
}
