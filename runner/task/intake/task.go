package intake

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Task describes the work of a run. It does not change after Read.
type Task struct {
	// Task has the fields that the transcript keeps as they are. The fields below replace its Issue, Author, Repair
	// and Subject.
	transcript.Task
	Name    string // for the agent: "issue o/r#7"
	Key     string
	Branch  string // that the change goes to
	Issue   *form.Issue
	Author  *forge.User // who wrote the issue
	AskedAt time.Time   // later texts do not count; the zero time means no limit

	// Pull is the pull request that the run continues, as Mode says. It is nil for New.
	Pull *forge.PullRequest

	// Repair is the repair attempt on Pull. It is nil for another task.
	Repair *Repair

	// Subject is the target of feedback. It is nil for a task that makes a change.
	Subject *Subject

	Progress
}

// Progress is the place of progress comments.
type Progress struct {
	// ProgressOn is the issue or pull request of the requesting event, also if a job names the
	// issue itself. It is 0 without one.
	ProgressOn int
	// ProgressLike holds the comments there that may be an earlier run's progress.
	ProgressLike []forge.Comment
}

// Mode is the treatment of an existing pull request.
type Mode int

const (
	// New is a task without a pull request: the change gets a branch of the task's own.
	New Mode = iota
	// Continue extends a run's pull request: the old change and the additions become one commit on
	// the base.
	Continue
	// Join extends a person's pull request: the additions become one commit on top of the person's,
	// pushed only if nothing came in between. The base branch of the pull request still configures
	// the run.
	Join
)

// Mode returns the treatment of t.Pull.
func (t Task) Mode() Mode { return ModeOf(t.Pull) }

// ModeOf returns the mode for a pull request. pull may be nil.
func ModeOf(pull *forge.PullRequest) Mode {
	switch {
	case pull == nil:
		return New
	case IsRunBranch(pull.Head):
		return Continue
	}
	return Join
}

// TranscriptEvent returns the task for the transcript, with the text that the model gets.
func (t Task) TranscriptEvent() transcript.Task {
	event := t.Task
	event.SHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(t.Text)))
	event.Repair = (*transcript.Repair)(t.Repair)
	if t.Subject != nil {
		event.Subject = &t.Subject.Subject
	}
	if t.Issue != nil {
		event.Issue = t.Issue.String()
	}
	if t.Author != nil && !t.Author.Bot {
		event.Author, event.AuthorID = t.Author.Login, t.Author.ID
	}
	return event
}

// TaskFromTranscript returns the task in a run's transcript. Key and branch are in other events.
func TaskFromTranscript(recorded transcript.Task) Task {
	t := Task{Task: recorded, Name: recorded.Source, Repair: (*Repair)(recorded.Repair)}
	if recorded.Subject != nil {
		t.Subject = &Subject{Subject: *recorded.Subject}
	}
	if issue, err := form.ParseIssue(recorded.Issue); err == nil && issue.Repository != "" {
		t.Issue, t.Name = &issue, "issue "+issue.String()
	}
	if recorded.Author != "" {
		t.Author = &forge.User{Login: recorded.Author, ID: recorded.AuthorID}
	}
	return t
}
