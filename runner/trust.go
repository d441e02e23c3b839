package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// ranks orders the roles that GitHub gives in a repository.
var ranks = map[string]int{"read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}

// trustActor ends a run that somebody asked for who may not. It costs a call of
// the API and nothing else.
func (r *run) trustActor(ctx context.Context) error {
	if r.request == nil || r.request.Actor.Login == "" {
		return nil
	}
	if r.env.first(tokenNames...) == "" {
		return outcome.Stopf(outcome.InvalidInput, "no_token",
			"Who asks can only be judged with a token: set GITHUB_TOKEN.")
	}
	actor := r.request.Actor
	why, err := r.distrust(ctx, github.User{Login: actor.Login, ID: actor.ID, Bot: actor.Bot()})
	if err != nil {
		return forgeFailure("The role of "+actor.Login+" cannot be asked for", err)
	}
	if why != "" {
		return outcome.Stopf(outcome.Skipped, "untrusted_actor", "%s; nothing was done (%s).", sentence(why), r.request.Trigger)
	}
	return r.refuseFork(ctx)
}

// distrust says why the words of an account do not count; "" when they do.
func (r *run) distrust(ctx context.Context, who github.User) (string, error) {
	if who.Bot || strings.HasSuffix(who.Login, "[bot]") {
		if slices.ContainsFunc(r.job.Trust.Bots, func(bot string) bool { return strings.EqualFold(bot, who.Login) }) {
			return "", nil
		}
		return fmt.Sprintf("the bot %s is not in trust.bots", who.Login), nil
	}
	permission, err := r.permission(ctx, who.Login)
	if err != nil {
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
		who.Login, role, r.env.get("GITHUB_REPOSITORY"), strings.Join(r.job.Trust.Roles, ", ")), nil
}

// roleCounts compares with the least of trust.roles. A role of the
// organisation's own counts as the level that it builds on.
func (r *run) roleCounts(p github.Permission) bool {
	has := max(ranks[p.Level], ranks[p.Role])
	return slices.ContainsFunc(r.job.Trust.Roles, func(role string) bool { return ranks[role] > 0 && has >= ranks[role] })
}

// permission asks once for each account.
func (r *run) permission(ctx context.Context, login string) (github.Permission, error) {
	key := strings.ToLower(login)
	if known, asked := r.permissions[key]; asked {
		return known, nil
	}
	owner, name := r.eventRepository()
	p, err := r.forge.Permission(ctx, owner, name, login)
	if err != nil {
		return p, err
	}
	if r.permissions == nil {
		r.permissions = map[string]github.Permission{}
	}
	r.permissions[key] = p
	return p, nil
}

// refuseFork ends a run on the pull request of a fork, whose branch belongs to
// somebody outside.
func (r *run) refuseFork(ctx context.Context) error {
	if !r.request.OnPull {
		return nil
	}
	owner, name := r.eventRepository()
	pull, err := r.forge.PullRequest(ctx, owner, name, r.request.Number)
	if err != nil {
		return forgeFailure(fmt.Sprintf("Pull request #%d cannot be read", r.request.Number), err)
	}
	r.pull = pull
	switch {
	case !strings.EqualFold(pull.HeadRepository, owner+"/"+name):
		return outcome.Stopf(outcome.Skipped, "fork",
			"Pull request #%d comes from a fork, and those are not worked on (trust.forks): %s.", pull.Number, pull.URL)
	case pull.State != "open":
		return outcome.Stopf(outcome.Skipped, "pull_request_closed", "Pull request #%d is closed; reopen it to have it worked on: %s.", pull.Number, pull.URL)
	case !strings.HasPrefix(pull.Head, runBranches):
		return outcome.Stopf(outcome.Skipped, "foreign_branch",
			"Pull request #%d is not of a run: only branches below %s are gone on with, never a person's: %s.", pull.Number, runBranches, pull.URL)
	}
	return nil
}
