package intake

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Source reads a task. Call its stages in this order: RequireTrustedRequester, Read, CheckNotDone, FetchImages.
type Source struct {
	Event       Event
	Request     *actions.Request // that the event makes; nil for a task of the job's own
	Job         *job.Job
	JobFile     string // its name; empty for none
	Forge       forge.Forge
	Target      forge.Repository // that the change goes to; without a name where none is known
	Permissions PermissionCache
	Record      *record.Record // gets warnings, and images
	// Publishes is set if the run publishes its own change.
	Publishes bool
	// FailedChecks describes the failed checks under repair. Repair is the attempt, nil for another
	// task.
	FailedChecks []clean.Part
	Repair       *Repair

	repairHead *forge.Commit // of the pull request under repair; nil for another task

	JobFiles
}

// JobFiles reads what the job names.
type JobFiles interface {
	// ReadPrompt returns the text of task.prompt or task.prompt_file.
	ReadPrompt(ctx context.Context) (string, error)
	// ReadBesideJob reads a file of up to limit bytes. The path is relative to the job file.
	ReadBesideJob(ctx context.Context, name string, limit int64) ([]byte, error)
}

func (s *Source) eventRepository() forge.Repository { return s.Forge.Repository(s.Event.Repository) }

// Read reads the task. pull is the result of RequireTrustedRequester: a pull request to work on, or nil.
func (s *Source) Read(ctx context.Context, pull *forge.PullRequest) (Task, error) {
	t, err := s.readTask(ctx, pull)
	if err != nil {
		return Task{}, err
	}
	if t.Subject != nil {
		pull = nil // the run does not continue it
	}
	t.Title, t.Text = cmp.Or(s.Job.Task.Title, t.Title), s.Record.Redact(t.Text)
	t.Pull, t.Repair = pull, s.Repair
	t.Key, t.Branch = s.keyAndBranch(t)
	switch {
	case t.Subject != nil, t.Repair != nil: // the published text itself is the only progress
	case s.Request != nil:
		t.ProgressOn = s.Request.Number
	case !t.AskedAt.IsZero() && t.Issue != nil:
		t.ProgressOn = t.Issue.Number
	}
	return t, nil
}

// readTask reads the task: the subject of feedback, an event's pull request or request, a named issue, or the prompt.
func (s *Source) readTask(ctx context.Context, pull *forge.PullRequest) (Task, error) {
	switch {
	case s.Job.Publish.IsFeedback():
		return s.readSubject(ctx)
	case pull != nil:
		return s.readPull(ctx, pull)
	case s.Request != nil:
		return s.readRequest(ctx)
	case s.Job.Task.Issue != "":
		return s.readNamedIssue(ctx)
	}
	t, text, err := s.promptTask(ctx)
	t.Text = text
	return t, err
}

// promptTask returns a task with its source, and the text of the job's own prompt.
func (s *Source) promptTask(ctx context.Context) (t Task, prompt string, err error) {
	t = Task{Task: transcript.Task{Source: "prompt"}, Name: "prompt"}
	switch {
	case s.Request != nil:
		t = s.taskOfRequest()
	case s.JobFile != "":
		t.Source, t.Name = "job", "job "+s.JobFile
	}
	if s.Job.Task.Prompt != "" || s.Job.Task.PromptFile != "" {
		prompt, err = s.ReadPrompt(ctx)
	}
	return t, prompt, err
}

// keyAndBranch returns the task key, and the branch for the change. A job's own task has the job's key. A task
// from an event has a key for each issue. A pull request keeps its branch. Feedback has the branch "".
func (s *Source) keyAndBranch(t Task) (key, branch string) {
	switch {
	case t.Subject != nil: // its text is another one each time
		return cmp.Or(s.Job.Name, s.Job.Publish.As), ""
	case t.Pull != nil:
		return strings.TrimPrefix(t.Pull.Head, BranchPrefix), t.Pull.Head
	case s.Request != nil && t.Issue != nil:
		key = strings.TrimPrefix(fmt.Sprintf("%s-issue-%d", s.Job.Name, t.Issue.Number), "-")
	default:
		key = s.Job.Key(t.Text)
	}
	return key, cmp.Or(s.Job.PullRequest.Branch, BranchPrefix+key)
}

// taskOfRequest returns a task with the origin of the request, without its text.
func (s *Source) taskOfRequest() Task {
	q := s.Request
	return Task{
		Task: transcript.Task{Source: "event", Trigger: q.Trigger, Actor: q.Actor.Login, ActorID: q.Actor.ID}, Name: "event " + s.Event.Name, AskedAt: q.RequestedAt,
	}
}

// readRequest returns the task from the event, with its texts as of the time of the request.
func (s *Source) readRequest(ctx context.Context) (Task, error) {
	t, q := s.taskOfRequest(), s.Request
	if q.Prompt != "" {
		return s.addInput(t, taskInput{parts: []clean.Part{{Kind: "request", Text: q.Prompt}}}, "The event")
	}
	var words []clean.Part
	if q.Words != "" {
		words = []clean.Part{{Kind: "request", Author: q.Actor.Login, Text: q.Words}}
	}
	return s.readIssue(ctx, t, form.Issue{Repository: s.Event.Repository, Number: q.Number}, words...)
}

// readNamedIssue reads the issue that task.issue names. If the event is about the same issue, later texts do not count.
func (s *Source) readNamedIssue(ctx context.Context) (Task, error) {
	ref, err := s.namedIssue()
	if err != nil {
		return Task{}, err
	}
	if s.Target.Name() == "" {
		return Task{}, s.noRepositoryError(ref)
	}
	t := Task{Task: transcript.Task{Source: "issue"}}
	if s.issueInEvent(ref) != nil {
		t.AskedAt = s.Event.TimeOnIssue()
	}
	return s.readIssue(ctx, t, ref)
}

// namedIssue returns task.issue. If it names no repository, it is in the target repository.
func (s *Source) namedIssue() (form.Issue, error) {
	ref, err := form.ParseIssue(s.Job.Task.Issue)
	if err != nil {
		return ref, err // the job was checked
	}
	if ref.Repository = cmp.Or(ref.Repository, s.Target.Name()); ref.Repository == "" {
		return ref, s.noRepositoryError(ref)
	}
	return ref, nil
}

// noRepositoryError returns the error for task.issue without a target repository.
func (s *Source) noRepositoryError(ref form.Issue) error {
	return outcome.Stopf(outcome.InvalidInput, "no_repository",
		"task.issue is %s and no repository is known; write OWNER/REPO#%d or set repository.name.", s.Job.Task.Issue, ref.Number)
}
