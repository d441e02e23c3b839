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

// Surroundings are what the environment of a run says of where it was started.
type Surroundings struct {
	InActions  bool
	EventName  string // GITHUB_EVENT_NAME
	EventPath  string // GITHUB_EVENT_PATH
	Repository string // GITHUB_REPOSITORY, where the event happened
	Server     string // GITHUB_SERVER_URL, root of the pages of the forge
	HasToken   bool
}

// Around returns what an environment says of where a run is started.
func Around(env settings.Environment) Surroundings {
	return Surroundings{
		InActions: env.InActions(), EventName: env.Get("GITHUB_EVENT_NAME"), EventPath: env.Get("GITHUB_EVENT_PATH"),
		Repository: env.Get("GITHUB_REPOSITORY"), Server: env.ForgeServer(), HasToken: env.Token() != "",
	}
}

// Event is what started the run, where a workflow did. Whether that matters, the
// job tells.
type Event struct {
	*actions.Event // nil where there is none
	Surroundings
	err    error            // why there is none
	repair *actions.Request // of a command; nil where an event asks
}

// ReadEvent reads what the surroundings name. What is wrong with it is told once
// it matters.
func ReadEvent(ctx context.Context, from Surroundings) Event {
	e := Event{Surroundings: from}
	e.Event, e.err = actions.ReadEvent(ctx, from.EventName, from.EventPath)
	return e
}

// Base is the branch from which a run on a pull request is configured: the one
// that it would be merged into, never its head, which anybody may write. It is
// empty for an event about none.
func (e Event) Base() string {
	if !e.InActions || e.Event == nil || e.PullRequest == nil {
		return ""
	}
	return e.PullRequest.Base.Ref
}

// Unusable is the outcome of an event that cannot be read; nil for one that can,
// and where there is none.
func (e Event) Unusable() error {
	if e.err == nil || e.missing() {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "event", "The event cannot be used: %s.", outcome.Trimmed(e.err)).Because(e.err)
}

// onPull says whether something became of a pull request itself, which asks in no words.
func (e Event) onPull() bool {
	return e.Event != nil && e.PullRequest != nil && e.Comment == nil && e.Review == nil
}

func (e Event) missing() bool { return errors.Is(e.err, actions.ErrNoEvent) }

// Request is what the event asks for; nil for a job that has a task of its own, as one
// has that says something on the pull request of an event. An
// event that asks for nothing ends the run, before anything is asked of anybody.
func (e Event) Request(j *job.Job) (*actions.Request, error) {
	switch {
	case e.repair != nil:
		asked := *e.repair
		return &asked, e.ofRepository()
	case j.Task.From != "event", j.Publish.Feedback() && e.onPull():
		return nil, nil
	case e.missing():
		return nil, outcome.Stopf(outcome.InvalidInput, "event",
			"task.from is event and there is none: GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set; give a task, or run in GitHub Actions.")
	case e.err != nil:
		return nil, e.Unusable()
	}
	err := e.ofRepository()
	if err != nil {
		return nil, err
	}
	request, why := e.Event.Request(actions.Triggers{
		Labels: j.Trigger.Labels, Assignees: j.Trigger.Assignees, Command: j.Trigger.Command, Prefix: BranchPrefix,
	})
	if request == nil && (e.Name == "workflow_dispatch" || e.GivenIssue() != "") { // somebody typed it so
		return nil, outcome.Stopf(outcome.InvalidInput, "event", "%s.", outcome.Sentence(why))
	}
	if request == nil {
		return nil, outcome.Stopf(outcome.Skipped, "event_asks_nothing", "%s.", outcome.Sentence(why))
	}
	if request.Typed != "" {
		if request.Number, err = e.typedIssue(request.Typed); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// typedIssue returns the number of an issue that somebody typed when the workflow was started. It
// is read as --issue is, and has to be of the repository of the event: who may start workflows
// there has no say elsewhere.
func (e Event) typedIssue(typed string) (int, error) {
	issue, err := form.ParseIssue(typed)
	if err != nil {
		return 0, outcome.Stopf(outcome.InvalidInput, "event", "The issue %q of the event %s %v.", fmt.Sprintf("%.100s", typed), e.Name, err)
	}
	if at := form.IssueServer(typed); at != "" && !sameHost(at, e.Server) {
		return 0, outcome.Stopf(outcome.InvalidInput, "issue", "The event %s names an issue on %s, and the workflow runs on %s: give an issue of %s.", e.Name, at, e.Server, e.Repository)
	}
	if issue.Repository != "" && !strings.EqualFold(issue.Repository, e.Repository) {
		return 0, outcome.Stopf(outcome.InvalidInput, "issue", "The event %s names an issue of %s, and the workflow runs in %s: give an issue of that repository, or name the other one as task.issue of a job.", e.Name, issue.Repository, e.Repository)
	}
	return issue.Number, nil
}

// Subject is the number of the issue or pull request that the event is about; 0 for an event about
// none.
func (e Event) Subject() (int, error) {
	switch {
	case e.PullRequest != nil:
		return e.PullRequest.Number, nil
	case e.Issue != nil:
		return e.Issue.Number, nil
	case e.GivenIssue() == "":
		return 0, nil
	}
	return e.typedIssue(e.GivenIssue())
}

func (e Event) ofRepository() error {
	if form.ValidateRepository(e.Repository) == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "event", "The event is of no repository: GITHUB_REPOSITORY is not OWNER/REPO; run in GitHub Actions.")
}
