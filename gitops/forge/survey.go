package forge

// MaxSurvey is how many questions one call of Survey may have.
const MaxSurvey = 100

// Question is what Survey is to find out of one repository.
type Question struct {
	Repository string // OWNER/REPO
	Branch     string // empty: the default one
	Commit     string // that has to be there; empty for none
	Issue      int    // 0 for none
	Head       string // branch whose open pull request is looked for; empty for none
	Pull       int    // pull request whose state is asked for; 0 for none
}

// Finding is what Survey found. That something is not there is no error.
type Finding struct {
	Found      bool   // the repository is there, and the token sees it
	Repository string // by the name that it has now
	Archived   bool
	CanWrite   bool   // the token may push
	Branch     string // that was asked for, or the default one
	Tip        string // commit of Branch; empty where there is no such branch
	HasCommit  bool
	IssueState string // open, closed; empty where there is none
	Open       *OpenPull
	PullState  string // open, merged, closed; empty where there is none
}

// OpenPull is an open pull request of a branch.
type OpenPull struct {
	Number int
	URL    string
}
