package forge

// MaxSurvey is how many questions one call of Survey may have.
const MaxSurvey = 100

// Question asks about one repository.
type Question struct {
	Repository string // OWNER/REPO
	Branch     string // empty: the default one
	Commit     string // that has to be of the branch; empty for none
	Issue      int    // 0 for none
	Head       string // branch whose open pull request is looked for; empty for none
	Pull       int    // pull request whose state is asked for; 0 for none
}

// Finding is the answer. Missing objects are no error.
type Finding struct {
	Found      bool   // the repository is there, and the token sees it
	Repository string // by the name that it has now
	Archived   bool
	CanWrite   bool   // the token's account may push, or that cannot be told
	Branch     string // that was asked for, or the default one
	Tip        string // commit of Branch; empty where there is no such branch
	HasCommit  bool   // the branch has the commit
	IssueState string // open, closed; empty where there is none
	Open       *OpenPull
	PullState  string // open, merged, closed; empty where there is none
	PullHead   string // commit at the end of its branch
}

// OpenPull is an open pull request of a branch.
type OpenPull struct {
	Number int
	URL    string
}

// MaxFound limits the results of a search for words. A forge returns no more.
const MaxFound = 1000

// Search selects issues if Issues or Labels is set, repositories with matching files if Code is,
// and repositories otherwise.
type Search struct {
	Organisation string // account that owns the repositories; empty for any
	Topic        string
	Code         string
	Issues       string
	Labels       []string
	// Heads is a prefix of branches whose open pull requests are wanted, if the search reports
	// them.
	Heads string
}

// Hit is a found repository or issue.
type Hit struct {
	Repository string
	Issue      int // 0 for a repository
	// Finding is the search's information on the repository's default branch, or nil.
	Finding *Finding
	Open    map[string]OpenPull // by branch, of those that begin with Heads
}
