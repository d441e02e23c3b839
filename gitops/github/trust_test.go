package github_test

import (
	"net/http"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestPermission(t *testing.T) {
	_, repository, handle := newForge(t)
	repository.Permissions = map[string]string{"maintainer": "maintain", "helper": "triage", "gone": "none"}
	for login, want := range map[string]forge.Permission{
		"octocat":    {Level: "admin", Role: "admin"},
		"Maintainer": {Level: "write", Role: "maintain"},
		"helper":     {Level: "read", Role: "triage"},
		"gone":       {Level: "none", Role: "none"},
		"stranger":   {Level: "read", Role: "read"},
	} {
		must.Same(t, want, must.Get(handle.Permission(t.Context(), login))(t), login)
	}
}

func TestUnknownUserHasNoPermission(t *testing.T) {
	a := newAPI(t, map[string]http.HandlerFunc{"GET /repos/o/r/collaborators/down/permission": answer(403, `{"message": "Resource not accessible"}`)})
	must.Same(t, "none", must.Get(a.repository.Permission(t.Context(), "nobody"))(t).Level, "an account that is not there")
	if got, err := a.repository.Permission(t.Context(), "down"); forge.KindOf(err) != forge.Forbidden || got.Level != "none" {
		t.Errorf("an answer that is refused: %v, %v", got, err)
	}
	asked := len(a.asked)
	for _, login := range []string{"", ".", "..", "a/b", "a?b", "a%2fb", "a b", "[bot]"} {
		must.Same(t, forge.Invalid, forge.KindOf(must.Err(a.repository.Permission(t.Context(), login))), login)
	}
	must.Same(t, asked, len(a.asked), "impossible names were asked for", a.asked[asked:])
}

func TestReviewComments(t *testing.T) {
	_, repository, handle := newForge(t)
	pull := topicPull(t, handle)
	for i := range 101 {
		repository.AddReviewComment(pull.Number, forgetest.ReviewComment{ReviewID: 7, Author: forgetest.User{Login: "mona"}, Path: "greet.txt", Line: i + 1, DiffHunk: "@@", Body: "No."})
	}
	got, err := handle.ReviewComments(t.Context(), pull.Number)
	if err != nil || len(got) != 101 {
		t.Fatalf("%d comments, %v", len(got), err)
	}
	want := forge.ReviewComment{ID: got[100].ID, ReviewID: 7, Author: got[100].Author, Path: "greet.txt", DiffHunk: "@@", Body: "No.", CreatedAt: got[100].CreatedAt, UpdatedAt: got[100].CreatedAt}
	must.Same(t, want, got[100])
	if want.Author.Login != "mona" || want.CreatedAt.IsZero() {
		t.Errorf("%v", want)
	}
	pulled, err := handle.PullRequest(t.Context(), pull.Number)
	if err != nil || pulled.HeadRepository != "octo/widgets" || pulled.Head != "feature/topic" {
		t.Errorf("pull request %+v, %v", pulled, err)
	}
}
