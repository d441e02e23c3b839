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

// GitHubActions is the app slug of workflow jobs.
const GitHubActions = "github-actions"

// Check is the latest result of a check run or commit status. Several may share a name: jobs of two
// workflows, or of one started by two events.
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
	HeadRepository string // OWNER/NAME; "" where it is gone
	URL            string
}

// Job is a job of a workflow run.
type Job struct {
	ID         int64
	RunID      int64
	Attempt    int // of the run, that the job ran in
	Name       string
	Status     string // as of a Check
	Conclusion string // as of a Check
	URL        string
	Started    time.Time
	Completed  time.Time
	Steps      []Step
}

// Step is a job's step. Its times are whole seconds, zero if it did not run.
type Step struct {
	Number     int
	Name       string
	Status     string // as of a Check
	Conclusion string // as of a Check
	Started    time.Time
	Completed  time.Time
}

// CommitAccounts are the accounts that the forge attributes a commit to, by mail address. Anybody
// can write those addresses. Unknown ones are zero.
type CommitAccounts struct {
	Author, Committer User
	// Verified reports a signature accepted as the committer's.
	Verified bool
}

// MergeableDirty is the state of a pull request that conflicts with its base.
const MergeableDirty = "dirty"
