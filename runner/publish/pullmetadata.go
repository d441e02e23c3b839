package publish

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// hasMetadata says whether the job asks for more of a pull request than its text.
func hasMetadata(wanted job.PullRequest) bool {
	return len(wanted.Labels)+len(wanted.Assignees)+len(wanted.Reviewers) > 0
}

// addMetadata adds what the job asks for and the pull request does not have. What
// fails is a warning: the pull request is there. Reviews are asked for once, when
// it is opened.
func (f Forge) addMetadata(ctx context.Context, wanted job.PullRequest, pull *forge.PullRequest, opening bool) {
	if labels := missing(wanted.Labels, pull.Labels); len(labels) > 0 {
		f.metadataSet("labels", f.repository().AddLabels(ctx, pull.Number, labels))
	}
	if assignees := missing(wanted.Assignees, pull.Assignees); len(assignees) > 0 {
		f.metadataSet("assignees", f.repository().AddAssignees(ctx, pull.Number, assignees))
	}
	if opening {
		var users, teams []string
		for _, reviewer := range wanted.Reviewers {
			if _, team, isTeam := strings.Cut(reviewer, "/"); isTeam {
				teams = append(teams, team)
			} else {
				users = append(users, reviewer)
			}
		}
		f.askForReviews(ctx, pull.Number, missing(users, pull.Reviewers), missing(teams, pull.Teams))
	}
}

// askForReviews asks all at once. GitHub refuses all for one that it does not
// take; each is asked alone then, so that the others are.
func (f Forge) askForReviews(ctx context.Context, number int, users, teams []string) {
	if len(users)+len(teams) == 0 {
		return
	}
	ask := func(users, teams []string) error {
		return f.repository().RequestReviewers(ctx, number, users, teams)
	}
	err := ask(users, teams)
	if kind := forge.KindOf(err); len(users)+len(teams) == 1 || kind != forge.Invalid && kind != forge.NotFound && kind != forge.Forbidden {
		f.metadataSet("reviewers", err)
		return
	}
	for _, user := range users {
		f.metadataSet("reviewers ("+user+")", ask([]string{user}, nil))
	}
	for _, team := range teams {
		f.metadataSet("reviewers (team "+team+")", ask(nil, []string{team}))
	}
}

func (f Forge) metadataSet(what string, err error) {
	if err == nil {
		return
	}
	kind, _, _ := strings.Cut(what, " ")
	f.Record.Warn("pull_request_"+kind, "The pull request's %s could not be set: %v", what, err)
}

// missing are the names that are not there, in whatever case: GitHub has none
// that differ in it alone.
func missing(wanted, there []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		return slices.ContainsFunc(there, func(other string) bool { return strings.EqualFold(name, other) })
	})
}
