package intake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// writeAccessEvents lists the events caused by people and programs with write permission, or by nobody.
// The author of any other event must have a trusted role, whether the task is from the event or
// from the job.
var writeAccessEvents = map[string]bool{
	"push": true, "create": true, "delete": true, "release": true, "schedule": true, "deployment": true,
	"workflow_dispatch": true, "repository_dispatch": true, "merge_group": true,
}

// RequireTrustedRequester stops a run whose requester is not trusted. It costs one API call, and two more
// on a pull request. It returns the pull request to continue, or nil for other tasks.
func (s *Source) RequireTrustedRequester(ctx context.Context) (*forge.PullRequest, error) {
	e := s.Event
	if s.Request != nil && s.Request.Repair {
		return s.admitRepair(ctx)
	}
	startedByHand := s.Request == nil && !e.InActions
	if startedByHand || writeAccessEvents[e.EventName] || e.isMissing() {
		return nil, nil
	}
	if err := e.UnusableError(); err != nil {
		return nil, err
	}
	actor, trigger := e.Sender, "event "+e.EventName
	if s.Request != nil {
		actor, trigger = s.Request.Actor, s.Request.Trigger
	}
	why, err := s.actorDistrustReason(ctx, forge.User{Login: actor.Login, ID: actor.ID, Bot: actor.IsBot()})
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, outcome.Stopf(outcome.Skipped, "untrusted_actor", "%s; nothing was done (%s).", outcome.Sentence(why), trigger)
	case s.Request == nil:
		return nil, s.refuseForkEvent(ctx)
	case !s.Request.OnPull:
		return nil, nil
	}
	return s.admitPullRequest(ctx)
}

// actorDistrustReason returns why the account that caused the event is not trusted, or "". The error is an
// unusable configuration or a failed API call.
func (s *Source) actorDistrustReason(ctx context.Context, actor forge.User) (why string, err error) {
	if actor.Login == "" {
		return "the event does not say who caused it", nil
	}
	if !s.Event.HasToken {
		return "", outcome.Stopf(outcome.InvalidInput, "no_token", "agent-ci needs a token to check who asks: set GITHUB_TOKEN.")
	}
	if err := s.Event.requireRepository(); err != nil {
		return "", err
	}
	return s.DistrustReason(ctx, s.eventRepository(), actor)
}

// admitPullRequest reads the pull request of a request. It rejects every fork. A fork's branch belongs to
// an outsider and accepts no push. Its commits on a branch of this repository would bypass the
// approval of outsiders' workflows.
func (s *Source) admitPullRequest(ctx context.Context) (*forge.PullRequest, error) {
	pull, err := ReadPullRequest(ctx, s.eventRepository(), s.Request.Number)
	if err != nil {
		return nil, err
	}
	switch {
	case !strings.EqualFold(pull.HeadRepository, s.Event.Repository):
		return nil, outcome.Stopf(outcome.Skipped, "fork",
			"Pull request #%d comes from a fork, and agent-ci does not work on branches of forks: %s.", pull.Number, pull.URL)
	case pull.State != "open":
		return nil, outcome.Stopf(outcome.Skipped, "pull_request_closed", "Pull request #%d is closed; reopen it if you want agent-ci to work on it: %s.", pull.Number, pull.URL)
	case ModeOf(pull) == Join && !s.Job.Publish.IsFeedback():
		return pull, s.requirePushableBranch(ctx, pull)
	}
	return pull, nil
}

// requirePushableBranch stops a run on a person's pull request if its branch is the default branch, or if
// the run does not push itself: agent-ci publish does not support a person's branch.
func (s *Source) requirePushableBranch(ctx context.Context, pull *forge.PullRequest) error {
	refuse := func(why string) error {
		return outcome.Stopf(outcome.Skipped, "foreign_branch", "Pull request #%d is a person's, and %s: %s.", pull.Number, why, pull.URL)
	}
	if !s.Publishes {
		return refuse("only a run that publishes its change itself goes on with one")
	}
	branch, err := DefaultBranch(ctx, s.eventRepository())
	if err != nil {
		return err
	}
	if branch == pull.Head {
		return refuse("its branch is the default branch, to which no run pushes")
	}
	return nil
}

// refuseForkEvent stops a run with the job's own task on an event from a fork. trust.forks allows
// it: the run works on the base, and no content of the head reaches it.
func (s *Source) refuseForkEvent(ctx context.Context) error {
	if s.Job.Trust.Forks {
		return nil
	}
	head, name, err := s.eventHead(ctx)
	if err != nil {
		return err
	}
	if name == "" || strings.EqualFold(head, s.Event.Repository) {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "fork", "%s comes from a fork, and its events start no run (trust.forks).", name)
}

// eventHead returns the repository of the event's branch, "" for a deleted one, and the name of its
// pull request or workflow run for messages. Both are "" for an event without a branch.
func (s *Source) eventHead(ctx context.Context) (repository, name string, err error) {
	e := s.Event
	switch {
	case e.PullRequest != nil:
		return e.PullRequest.Head.Repository.Name(), fmt.Sprintf("Pull request #%d", e.PullRequest.Number), nil
	case e.WorkflowRun != nil:
		return e.WorkflowRun.HeadRepository.Name(), "The branch of the workflow run", nil
	case e.Issue == nil || !e.Issue.IsPull():
		return "", "", nil
	}
	pull, err := ReadPullRequest(ctx, s.eventRepository(), e.Issue.Number)
	if err != nil {
		return "", "", err
	}
	return pull.HeadRepository, fmt.Sprintf("Pull request #%d", pull.Number), nil
}

// DistrustReason returns the reason not to trust an account's texts in a repository, or "".
func (s *Source) DistrustReason(ctx context.Context, repository forge.Repository, account forge.User) (why string, err error) {
	trust := s.Job.Trust
	if account.Bot || strings.HasSuffix(account.Login, "[bot]") {
		if forge.HasName(trust.Bots, account.Login) {
			return "", nil
		}
		return fmt.Sprintf("the bot %s is not in trust.bots", account.Login), nil
	}
	permission, err := s.Permissions.lookUp(ctx, repository, account.Login)
	switch {
	case forge.KindOf(err) == forge.Invalid: // a deleted account has no name
		return fmt.Sprintf("the account %q cannot be asked about", account.Login), nil
	case err != nil:
		return "", ForgeFailure("The role of "+account.Login+" cannot be asked for", err)
	case reachesTrustedRole(permission, trust.Roles):
		return "", nil
	}
	return fmt.Sprintf("the account %s has the role %q in %s, and trust.roles is %s",
		account.Login, cmp.Or(permission.Role, permission.Level), repository.Name(), strings.Join(trust.Roles, ", ")), nil
}

// roleRanks orders GitHub's repository roles.
var roleRanks = map[string]int{"read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

// reachesTrustedRole reports whether permission reaches any trusted role. A custom role of an organisation counts as
// its base role.
func reachesTrustedRole(permission forge.Permission, trusted []string) bool {
	rank := max(roleRanks[permission.Level], roleRanks[permission.Role])
	return slices.ContainsFunc(trusted, func(role string) bool { return roleRanks[role] > 0 && rank >= roleRanks[role] })
}

// PermissionCache caches the permissions of accounts. Each account is looked up once per repository.
type PermissionCache map[string]forge.Permission

// lookUp returns an account's permission in a repository, from the cache if it is there.
func (cache PermissionCache) lookUp(ctx context.Context, repository forge.Repository, login string) (forge.Permission, error) {
	key := strings.ToLower(repository.Name() + " " + login)
	if known, found := cache[key]; found {
		return known, nil
	}
	p, err := repository.Permission(ctx, login)
	if err == nil {
		cache[key] = p
	}
	return p, err
}
