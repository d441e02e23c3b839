package forge

// MaxSurvey is how many questions one call of Survey may have.
const MaxSurvey = 100

// Question is what Survey is to find out of one repository.
type Question struct {
	Repository string // OWNER/REPO
	Branch     string // empty: the default one
	Commit     string // that has to be of the branch; empty for none
	Issue      int    // 0 for none
	Head       string // branch whose open pull request is looked for; empty for none
	Pull       int    // pull request whose state is asked for; 0 for none
}

// Finding is what Survey found. That something is not there is no error.
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

// MaxFound is how many results a forge gives of a search for words, however many there are.
const MaxFound = 1000

// Search looks for one kind of thing: issues where Issues or Labels is set, repositories in whose
// files words are where Code is, else repositories.
type Search struct {
	Organisation string // account that owns the repositories; empty for any
	Topic        string
	Code         string
	Issues       string
	Labels       []string
	// Heads begins the names of branches whose open pull requests are wanted, where the search can
	// tell them.
	Heads string
}

// Hit is what a search found: a repository, or an issue of one.
type Hit struct {
	Repository string
	Issue      int // 0 for a repository
	// Finding is what the search told of the repository, by its default branch; nil where it has to
	// be asked.
	Finding *Finding
	Open    map[string]OpenPull // by branch, of those that begin with Heads
}
