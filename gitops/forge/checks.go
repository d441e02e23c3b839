package forge

import "time"

const (
	// MaxChecks is the largest number of checks read for a commit, and of jobs read for a workflow
	// run.
	MaxChecks = 1000
	// MaxSummary is the largest length of a check's summary, in bytes. The rest is cut.
	MaxSummary = 4 << 10
)

// GitHubActions is the slug of the app that reports workflow jobs.
const GitHubActions = "github-actions"

// Check is the latest result of a check run or commit status. Several may have the same name, such
// as jobs of two workflows, or of one workflow started by two events.
type Check struct {
	Name   string
	Status string // queued, in_progress, completed, or another word, which means not completed
	// Conclusion is "" if the check is not completed, else success, failure, cancelled, timed_out,
	// neutral, skipped, action_required, startup_failure or stale.
	Conclusion string
	App        string // slug of the app that made the check; "" for a status
	URL        string // page of the check, according to its author
	RunID      int64  // the workflow run, if the check is a job of one; else 0
	JobID      int64  // the job, if the check is one; else 0
	Summary    string // title and summary of the output, or the description of a status
}

// WorkflowRun is a run of a workflow.
type WorkflowRun struct {
	ID      int64
	Path    string // of the workflow's file
	Attempt int    // from 1
	HeadSHA string
}

// Job is a job of a workflow run.
type Job struct {
	ID    int64
	Steps []Step
}

// Step is a step of a job. Its times are whole seconds; zero for a check that never ran.
type Step struct {
	Name       string
	Conclusion string // as in Check
	Started    time.Time
	Completed  time.Time
}

// MergeableDirty is the state of a pull request that conflicts with its base.
const MergeableDirty = "dirty"
