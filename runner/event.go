package runner

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// readEvent reads what started the workflow. Whether that matters, the job will
// tell.
func (r *run) readEvent(ctx context.Context) {
	r.event, r.eventErr = actions.ReadEvent(ctx, r.env.Get("GITHUB_EVENT_NAME"), r.env.Get("GITHUB_EVENT_PATH"))
}

// eventBase is the branch from which a run on a pull request is configured: the
// one that it would be merged into, never its head, which anybody may write.
func (r *run) eventBase() string {
	switch {
	case r.pull != nil:
		return r.pull.Base
	case !r.env.InActions() || r.event == nil || r.event.PullRequest == nil:
		return ""
	}
	return r.event.PullRequest.Base.Ref
}

func (r *run) fromEvent() bool { return r.job.Task.From == "event" }

// findRequest ends a run whose event asks for nothing, before anything is asked
// of anybody.
func (r *run) findRequest(context.Context) error {
	switch {
	case !r.fromEvent():
		return nil
	case errors.Is(r.eventErr, actions.ErrNoEvent):
		return outcome.Stopf(outcome.InvalidInput, "no_event",
			"task.from is event and there is none: GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set; give a task, or run in GitHub Actions.")
	case r.eventErr != nil:
		return unusableEvent(r.eventErr)
	case job.ValidateRepository(r.env.Get("GITHUB_REPOSITORY")) != nil:
		return eventOfNoRepository()
	}
	request, why := r.event.Request(actions.Triggers{
		Labels: r.job.Trigger.Labels, Assignees: r.job.Trigger.Assignees, Command: r.job.Trigger.Command, Prefix: runBranches,
	})
	if request == nil {
		return outcome.Stopf(outcome.Skipped, "event_asks_nothing", "%s.", outcome.Sentence(why))
	}
	r.request, r.askedAt = request, request.At
	return nil
}

func unusableEvent(err error) error {
	return outcome.Stopf(outcome.InvalidInput, "event", "The event cannot be used: %s.", outcome.Trimmed(err)).Because(err)
}

func eventOfNoRepository() error {
	return outcome.Stopf(outcome.InvalidInput, "event", "The event is of no repository: GITHUB_REPOSITORY is not OWNER/REPO; run in GitHub Actions.")
}

// eventRepository is where the event happened.
func (r *run) eventRepository() forge.Repository {
	return r.forge.Repository(r.env.Get("GITHUB_REPOSITORY"))
}
