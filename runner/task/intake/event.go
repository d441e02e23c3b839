package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Surroundings describes the place a run was started in, from its environment.
type Surroundings struct {
	InActions  bool
	EventName  string // GITHUB_EVENT_NAME
	EventPath  string // GITHUB_EVENT_PATH
	Repository string // GITHUB_REPOSITORY, where the event happened
	Server     string // GITHUB_SERVER_URL, root of the pages of the forge
	HasToken   bool
}

// ReadSurroundings reads the Surroundings from an environment.
func ReadSurroundings(env settings.Environment) Surroundings {
	return Surroundings{
		InActions: env.InActions(), EventName: env.Get("GITHUB_EVENT_NAME"), EventPath: env.Get("GITHUB_EVENT_PATH"),
		Repository: env.Get("GITHUB_REPOSITORY"), Server: env.ForgeServer(), HasToken: env.Token() != "",
	}
}

// Event is the event that started the run, if a workflow did. The job decides whether it matters.
type Event struct {
	*actions.Event // nil where there is none
	Surroundings
	err           error            // why there is none
	repairRequest *actions.Request // of a command; nil where an event asks
}

// ReadEvent reads the event named by from. It keeps an error until the event is needed.
func ReadEvent(ctx context.Context, from Surroundings) Event {
	e := Event{Surroundings: from}
	e.Event, e.err = actions.ReadEvent(ctx, from.EventName, from.EventPath)
	return e
}

// Base returns the branch that configures a run on a pull request: its base, never its head,
// because anybody may write there. It is empty for an event without a pull request.
func (e Event) Base() string {
	if !e.InActions || e.Event == nil || e.PullRequest == nil {
		return ""
	}
	return e.PullRequest.Base.Ref
}

// UnusableError returns an error for an unreadable event. It is nil without an event.
func (e Event) UnusableError() error {
	if e.err == nil || e.isMissing() {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "event", "The event cannot be used: %s; set GITHUB_EVENT_PATH to a file with an event of GitHub.", outcome.WithoutFullStop(e.err)).Because(e.err)
}

// isAboutPull reports whether the event is about a pull request itself, not a comment or review on it.
func (e Event) isAboutPull() bool {
	return e.Event != nil && e.PullRequest != nil && e.Comment == nil && e.Review == nil
}

func (e Event) isMissing() bool { return errors.Is(e.err, actions.ErrNoEvent) }

// Request returns the request in the event. It returns nil for a job with its own task, and for a feedback
// job on the event's pull request. Otherwise, an event without a request is an error, before any call to
// the forge.
func (e Event) Request(j *job.Job) (*actions.Request, error) {
	switch {
	case e.repairRequest != nil:
		asked := *e.repairRequest
		return &asked, e.requireRepository()
	case j.Task.From != "event", j.Publish.IsFeedback() && e.isAboutPull():
		return nil, nil
	case e.isMissing():
		return nil, outcome.Stopf(outcome.InvalidInput, "event",
			"task.from is event and there is none: GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set; give a task, or run in GitHub Actions.")
	case e.err != nil:
		return nil, e.UnusableError()
	}
	err := e.requireRepository()
	if err != nil {
		return nil, err
	}
	request, why := e.Event.Request(actions.Triggers{
		Labels: j.Trigger.Labels, Assignees: j.Trigger.Assignees, Command: j.Trigger.Command, BranchPrefix: BranchPrefix,
	})
	if request == nil && (e.Name == "workflow_dispatch" || e.InputIssue() != "") { // somebody typed it so
		return nil, outcome.Stopf(outcome.InvalidInput, "event", "%s.", outcome.Sentence(why))
	}
	if request == nil {
		return nil, outcome.Stopf(outcome.Skipped, "event_asks_nothing", "%s.", outcome.Sentence(why))
	}
	if request.TypedIssue != "" {
		if request.Number, err = e.typedIssue(request.TypedIssue); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// typedIssue returns the number of an issue typed at the start of the workflow. It accepts the
// forms of --issue. The issue must be in the repository of the event, because permission to start
// workflows there means none elsewhere.
func (e Event) typedIssue(typed string) (int, error) {
	issue, err := form.ParseIssue(typed)
	if err != nil {
		return 0, outcome.Stopf(outcome.InvalidInput, "event", "The issue %q of the event %s %v.", fmt.Sprintf("%.100s", typed), e.Name, err)
	}
	if server := form.IssueServer(typed); server != "" && !sameHost(server, e.Server) {
		return 0, outcome.Stopf(outcome.InvalidInput, "issue", "The event %s names an issue on %s, and the workflow runs on %s: give an issue of %s.", e.Name, server, e.Server, e.Repository)
	}
	if issue.Repository != "" && !strings.EqualFold(issue.Repository, e.Repository) {
		return 0, outcome.Stopf(outcome.InvalidInput, "issue", "The event %s names an issue of %s, and the workflow runs in %s: give an issue of that repository, or name the other one as task.issue of a job.", e.Name, issue.Repository, e.Repository)
	}
	return issue.Number, nil
}

// SubjectNumber returns the number of the event's issue or pull request, or 0.
func (e Event) SubjectNumber() (int, error) {
	switch {
	case e.PullRequest != nil:
		return e.PullRequest.Number, nil
	case e.Issue != nil:
		return e.Issue.Number, nil
	case e.InputIssue() == "":
		return 0, nil
	}
	return e.typedIssue(e.InputIssue())
}

// requireRepository returns an error if GITHUB_REPOSITORY names no repository.
func (e Event) requireRepository() error {
	if form.ValidateRepository(e.Repository) == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "event", "The event is of no repository: GITHUB_REPOSITORY is not OWNER/REPO; run in GitHub Actions.")
}
