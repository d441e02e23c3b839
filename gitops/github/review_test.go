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
	made, err := to.CreateReview(t.Context(), pull.Number, forge.NewReview{CommitSHA: pull.HeadSHA, Body: "Once.\nAnd no more."})
	if err != nil || made.Body != "Once.\nAnd no more." {
		t.Fatalf("CreateReview = %+v, %v", made, err)
	}
	if got := repository.Reviews(1); len(got) != 1 {
		t.Errorf("the reviews are %+v", got)
	}
}
