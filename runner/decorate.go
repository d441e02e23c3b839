package runner

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// decorate adds what the job asks for and the pull request does not have. What
// fails is a warning: the pull request is there. Reviews are asked for once, when
// it is opened; a milestone that it has stays.
func (r *run) decorate(ctx context.Context, pull *forge.PullRequest, opening bool) {
	wanted := r.job.PullRequest
	if labels := missing(wanted.Labels, pull.Labels); len(labels) > 0 {
		r.decorated("labels", r.repo.AddLabels(ctx, pull.Number, labels))
	}
	if assignees := missing(wanted.Assignees, pull.Assignees); len(assignees) > 0 {
		r.decorated("assignees", r.repo.AddAssignees(ctx, pull.Number, assignees))
	}
	if wanted.Milestone != "" && pull.Milestone == "" {
		r.decorated("milestone", r.repo.SetMilestone(ctx, pull.Number, wanted.Milestone))
	}
	if opening {
		r.askForReviews(ctx, pull.Number, missing(wanted.Reviewers, pull.Reviewers), missing(wanted.Teams, pull.Teams))
	}
}

// askForReviews asks all at once. GitHub refuses all for one that it does not
// take; each is asked alone then, so that the others are.
func (r *run) askForReviews(ctx context.Context, number int, users, teams []string) {
	if len(users)+len(teams) == 0 {
		return
	}
	ask := func(users, teams []string) error {
		return r.repo.RequestReviewers(ctx, number, users, teams)
	}
	err := ask(users, teams)
	if kind := forge.KindOf(err); len(users)+len(teams) == 1 || kind != forge.Invalid && kind != forge.NotFound && kind != forge.Forbidden {
		r.decorated("reviewers", err)
		return
	}
	for _, user := range users {
		r.decorated("reviewers ("+user+")", ask([]string{user}, nil))
	}
	for _, team := range teams {
		r.decorated("reviewers (team "+team+")", ask(nil, []string{team}))
	}
}

func (r *run) decorated(what string, err error) {
	if err == nil {
		return
	}
	kind, _, _ := strings.Cut(what, " ")
	r.rec.Warn("pull_request_"+kind, "The pull request's %s could not be set: %v", what, err)
}

// missing are the names that are not there, in whatever case: GitHub has none
// that differ in it alone.
func missing(wanted, there []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		return slices.ContainsFunc(there, func(other string) bool { return strings.EqualFold(name, other) })
	})
}
