package github_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// topicPull opens the pull request of feature/topic.
func topicPull(t *testing.T, to forge.Repository) *forge.PullRequest {
	t.Helper()
	pull, err := to.CreatePullRequest(t.Context(), forge.NewPullRequest{Title: "Topic", Head: "feature/topic", Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return pull
}

func TestReview(t *testing.T) {
	_, repository, to := newForge(t)
	pull := topicPull(t, to)
	files, err := to.PullRequestFiles(t.Context(), pull.Number)
	if err != nil {
		t.Fatal(err)
	}
	want := []forge.PullFile{{Path: "greet.txt", ID: revision(t, repository, "feature/topic:greet.txt"), Status: "modified", Patch: "@@ -1 +1 @@\n-hello\n\\ No newline at end of file\n+goodbye\n\\ No newline at end of file"}}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	_, err = to.CreateReview(t.Context(), pull.Number, forge.NewReview{
		CommitSHA: pull.HeadSHA, Body: "Hm.", Comments: []forge.LineComment{{Path: "greet.txt", Line: 2, Body: "Outside."}},
	})
	if forge.KindOf(err) != forge.Invalid {
		t.Errorf("err = %v, want kind %s", err, forge.Invalid)
	}
	made, err := to.CreateReview(t.Context(), pull.Number, forge.NewReview{
		CommitSHA: pull.HeadSHA, Body: "Hm.", Comments: []forge.LineComment{{Path: "greet.txt", Line: 1, Body: "Why?"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := to.Reviews(t.Context(), pull.Number)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]forge.Review{*made}, all, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error(diff)
	}
	if made.State != "COMMENTED" || made.CommitSHA != pull.HeadSHA || made.Author.Login != "octocat" {
		t.Errorf("the review is %+v", made)
	}
}

// A review whose answer is lost is not made a second time.
func TestReviewIsMadeOnce(t *testing.T) {
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
