package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// ranks orders the roles that GitHub gives in a repository.
var ranks = map[string]int{"read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

// writersEvents are the events that only people and programs with write
// permission can cause, or nobody at all. Whoever causes another has to have a
// role that counts, whether the event brings the task or the job has one.
var writersEvents = map[string]bool{
	"push": true, "create": true, "delete": true, "release": true, "schedule": true, "deployment": true,
	"workflow_dispatch": true, "repository_dispatch": true, "merge_group": true,
}

// trustActor ends a run that somebody asked for who may not. It costs a call of
// the API and nothing else.
func (r *run) trustActor(ctx context.Context) error {
	name := r.env.Get("GITHUB_EVENT_NAME")
	switch {
	case r.request == nil && !r.env.InActions(), writersEvents[name], errors.Is(r.eventErr, actions.ErrNoEvent):
		return nil
	case r.eventErr != nil:
		return unusableEvent(r.eventErr)
	}
	actor, trigger := r.event.Sender, "event "+name
	if r.request != nil {
		actor, trigger = r.request.Actor, r.request.Trigger
	}
	why, err := r.distrustActor(ctx, actor)
	if err != nil {
		return err
	}
	if why != "" {
		return outcome.Stopf(outcome.Skipped, "untrusted_actor", "%s; nothing was done (%s).", outcome.Sentence(why), trigger)
	}
	return r.refuseFork(ctx)
}

func (r *run) distrustActor(ctx context.Context, actor actions.Account) (string, error) {
	if actor.Login == "" {
		return "the event does not say who caused it", nil
	}
	if r.env.Token() == "" {
		return "", outcome.Stopf(outcome.InvalidInput, "no_token", "Who asks can only be judged with a token: set GITHUB_TOKEN.")
	}
	if job.ValidateRepository(r.env.Get("GITHUB_REPOSITORY")) != nil {
		return "", eventOfNoRepository()
	}
	why, err := r.distrust(ctx, r.eventRepository(), forge.User{Login: actor.Login, ID: actor.ID, Bot: actor.Bot()})
	if err != nil {
		return "", forgeFailure("The role of "+actor.Login+" cannot be asked for", err)
	}
	return why, nil
}

// distrust says why the words of an account in a repository do not count; ""
// when they do.
func (r *run) distrust(ctx context.Context, in forge.Repository, who forge.User) (string, error) {
	if who.Bot || strings.HasSuffix(who.Login, "[bot]") {
		if slices.ContainsFunc(r.job.Trust.Bots, func(bot string) bool { return strings.EqualFold(bot, who.Login) }) {
			return "", nil
		}
		return fmt.Sprintf("the bot %s is not in trust.bots", who.Login), nil
	}
	permission, err := r.permission(ctx, in, who.Login)
	switch {
	case forge.KindOf(err) == forge.Invalid: // an account that is gone has no name
		return fmt.Sprintf("the account %q cannot be asked about", who.Login), nil
	case err != nil:
		return "", err
	}
	if r.roleCounts(permission) {
		return "", nil
	}
	role := permission.Role
	if role == "" {
		role = permission.Level
	}
	return fmt.Sprintf("the account %s has the role %q in %s, and trust.roles is %s",
		who.Login, role, in.Name(), strings.Join(r.job.Trust.Roles, ", ")), nil
}

// roleCounts compares with the least of trust.roles. A role of the
// organisation's own counts as the level that it builds on.
func (r *run) roleCounts(p forge.Permission) bool {
	has := max(ranks[p.Level], ranks[p.Role])
	return slices.ContainsFunc(r.job.Trust.Roles, func(role string) bool { return ranks[role] > 0 && has >= ranks[role] })
}

// permission asks once for each account in a repository.
func (r *run) permission(ctx context.Context, in forge.Repository, login string) (forge.Permission, error) {
	key := strings.ToLower(in.Name() + " " + login)
	if known, asked := r.permissions[key]; asked {
		return known, nil
	}
	p, err := in.Permission(ctx, login)
	if err != nil {
		return p, err
	}
	if r.permissions == nil {
		r.permissions = map[string]forge.Permission{}
	}
	r.permissions[key] = p
	return p, nil
}

// refuseFork ends a run on the pull request of a fork, whose branch belongs to
// somebody outside. trust.forks lets a task of the job's own run on the event:
// it works on the base, and nothing of the head comes near it. Going on with the
// branch is refused always: a branch of a fork cannot be pushed to, and its
// commits on one of this repository would get past the approval that workflows
// of outsiders wait for.
func (r *run) refuseFork(ctx context.Context) error {
	if r.request == nil {
		return r.refuseForkEvent(ctx)
	}
	if !r.request.OnPull {
		return nil
	}
	here := r.eventRepository()
	pull, err := readPullRequest(ctx, here, r.request.Number)
	if err != nil {
		return err
	}
	r.pull = pull
	switch {
	case !strings.EqualFold(pull.HeadRepository, here.Name()):
		return outcome.Stopf(outcome.Skipped, "fork",
			"Pull request #%d comes from a fork, whose branch no run goes on with: it belongs to somebody outside: %s.", pull.Number, pull.URL)
	case pull.State != "open":
		return outcome.Stopf(outcome.Skipped, "pull_request_closed", "Pull request #%d is closed; reopen it to have it worked on: %s.", pull.Number, pull.URL)
	case r.joins():
		return r.mayJoin(ctx)
	}
	return nil
}

func (r *run) refuseForkEvent(ctx context.Context) error {
	if r.job.Trust.Forks {
		return nil
	}
	head, what, err := r.eventHead(ctx)
	if err != nil || what == "" || strings.EqualFold(head, r.env.Get("GITHUB_REPOSITORY")) {
		return err
	}
	return outcome.Stopf(outcome.Skipped, "fork", "%s comes from a fork, and its events start no run (trust.forks).", what)
}

// eventHead is the repository of the branch that the event is about, "" for one
// that is gone, and what has that branch; "" for an event about none.
func (r *run) eventHead(ctx context.Context) (repository, what string, err error) {
	e := r.event
	switch {
	case e.PullRequest != nil:
		return e.PullRequest.Head.Repository.Name(), fmt.Sprintf("Pull request #%d", e.PullRequest.Number), nil
	case e.WorkflowRun != nil:
		return e.WorkflowRun.HeadRepository.Name(), "What the workflow ran for", nil
	case e.Issue == nil || !e.Issue.OfPull():
		return "", "", nil
	}
	pull, err := readPullRequest(ctx, r.eventRepository(), e.Issue.Number)
	if err != nil {
		return "", "", err
	}
	return pull.HeadRepository, fmt.Sprintf("Pull request #%d", pull.Number), nil
}
