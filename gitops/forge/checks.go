package forge

import "time"

const (
	// MaxChecks is how many checks of a commit are read, and how many jobs of a run of
	// a workflow.
	MaxChecks = 1000
	// MaxSummary is how long the summary of a check may be, in bytes; the rest is left
	// out.
	MaxSummary = 4 << 10
)

// GitHubActions is the slug of the app whose checks are jobs of workflows.
const GitHubActions = "github-actions"

// Check is what a check run or commit status says of a commit, where no newer attempt at
// the same says another thing. Several may have one name: jobs of two workflows, or of
// one that two events started.
type Check struct {
	Name   string
	Status string // queued, in_progress, completed; another word of the server's is as one that is not completed
	// Conclusion is "" until it is completed: success, failure, cancelled, timed_out,
	// neutral, skipped, action_required, startup_failure, stale.
	Conclusion string
	App        string // slug of the app that made it; "" for a status
	URL        string // of its page, as who made it says
	RunID      int64  // the run of a workflow that it is a job of; 0 for others
	JobID      int64  // of that job; 0 for others
	Summary    string // title and summary of its output, or the words of a status
	Started    time.Time
	Completed  time.Time
}

// WorkflowRun is a run of a workflow.
type WorkflowRun struct {
	ID             int64
	Name           string // of the workflow
	Path           string // of the workflow's file
	Event          string // that started it
	Status         string // as of a Check
	Conclusion     string // as of a Check
	Attempt        int    // from 1 on
	HeadSHA        string
	HeadBranch     string
	HeadRepository string // OWNER/NAME; "" where it is gone
	URL            string
}

// Job is a job of a run of a workflow.
type Job struct {
	ID         int64
	RunID      int64
	Attempt    int // of the run, that the job ran in
	Name       string
	Status     string // as of a Check
	Conclusion string // as of a Check
	Runner     string // "" where none took it
	URL        string
	Started    time.Time
	Completed  time.Time
	Steps      []Step
}

// Step is a step of a job. Its times are whole seconds, zero for one that did not run.
type Step struct {
	Number     int
	Name       string
	Status     string // as of a Check
	Conclusion string // as of a Check
	Started    time.Time
	Completed  time.Time
}

// CommitAccounts are the accounts that the forge takes for those of a commit. It finds
// them by the mail addresses that stand in the commit, which anybody can write there;
// nobody's where it knows none.
type CommitAccounts struct {
	Author, Committer User
	// Verified says that the commit is signed, and that the forge takes the signature
	// for the committer's.
	Verified bool
}

// Mergeable states of a pull request that callers decide on.
const (
	MergeableClean   = "clean"
	MergeableDirty   = "dirty"   // it conflicts with its base
	MergeableUnknown = "unknown" // the server has not found out yet
)
