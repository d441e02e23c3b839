package github_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// topicPull opens the pull request of feature/topic.
func topicPull(t *testing.T, to forge.Repository) *forge.PullRequest {
	t.Helper()
	return must.Get(to.CreatePullRequest(t.Context(), forge.NewPullRequest{Title: "Topic", Head: "feature/topic", Base: "main"}))(t)
}

// A review whose answer is lost is not made a second time.
func TestPostsReviewOnce(t *testing.T) {
	server, repository, to := newForge(t)
	pull := topicPull(t, to)
	server.On("POST", "/repos/octo/widgets/pulls/1/reviews", forgetest.Reply{Status: 502, Body: `{}`, Late: true}, 1)
	must.Same(t, "Once.\nAnd no more.", must.Get(to.CreateReview(t.Context(), pull.Number, forge.NewReview{CommitSHA: pull.HeadSHA, Body: "Once.\nAnd no more."}))(t).Body, "CreateReview")
	must.Same(t, 1, len(repository.Reviews(1)), "the reviews are")
}
