package publish

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// addMetadata adds labels and assignees that the job wants and the pull request lacks. Failures are warnings. complete is
// false if a label or assignee could not be added.
func (f Forge) addMetadata(ctx context.Context, wanted job.PullRequest, pull *forge.PullRequest) (complete bool) {
	labelErr := f.Repo.AddLabels(ctx, pull.Number, forge.MissingNames(wanted.Labels, pull.Labels))
	f.warnIfUnset("labels", labelErr)
	assigneeErr := f.Repo.AddAssignees(ctx, pull.Number, forge.MissingNames(wanted.Assignees, pull.Assignees))
	f.warnIfUnset("assignees", assigneeErr)
	return labelErr == nil && assigneeErr == nil
}

// addReviewers requests reviews by users and teams ("organisation/team") of whom none is requested yet. Failures are
// warnings.
func (f Forge) addReviewers(ctx context.Context, wanted []string, pull *forge.PullRequest) {
	var users, teams []string
	for _, reviewer := range wanted {
		if _, team, isTeam := strings.Cut(reviewer, "/"); isTeam {
			teams = append(teams, team)
		} else {
			users = append(users, reviewer)
		}
	}
	f.requestReviews(ctx, pull.Number, forge.MissingNames(users, pull.Reviewers), forge.MissingNames(teams, pull.Teams))
}

// requestReviews requests all reviews at once. GitHub refuses all if one name is invalid. Then each is
// requested separately.
func (f Forge) requestReviews(ctx context.Context, number int, users, teams []string) {
	if len(users)+len(teams) == 0 {
		return
	}
	ask := func(users, teams []string) error {
		return f.Repo.RequestReviewers(ctx, number, users, teams)
	}
	err := ask(users, teams)
	mayBeOneName := slices.Contains([]forge.Kind{forge.Invalid, forge.NotFound, forge.Forbidden}, forge.KindOf(err))
	if !mayBeOneName || len(users)+len(teams) == 1 {
		f.warnIfUnset("reviewers", err)
		return
	}
	for _, user := range users {
		f.warnIfUnset("reviewers ("+user+")", ask([]string{user}, nil))
	}
	for _, team := range teams {
		f.warnIfUnset("reviewers (team "+team+")", ask(nil, []string{team}))
	}
}

// warnIfUnset warns if err is not nil. metadata names what could not be set.
func (f Forge) warnIfUnset(metadata string, err error) {
	if err == nil {
		return
	}
	kind, _, _ := strings.Cut(metadata, " ")
	f.Record.Warn("pull_request_"+kind, "The pull request's %s could not be set: %v", metadata, err)
}
