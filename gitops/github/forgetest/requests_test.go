package forgetest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func TestUndescribedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, request := range []struct{ method, path, body string }{
		{"GET", "/pulls?head=octo:main&state=all", ""},
		{"GET", "/pulls?heads=octo:main", ""},
		{"POST", "/pulls", `{"title": "T", "head": "feature/topic", "base": "main", "draft": true}`},
		{"POST", "/pulls", `{"title": "T", "base": "main"}`},
		{"PATCH", "/pulls/1", `{"titel": "T"}`},
		{"PATCH", "/pulls/1", `{"title": 7}`},
		{"POST", "/issues/1/labels", `7`},
		{"GET", "/milestones", ""},
		{"GET", "/stargazers", ""},
	} {
		w.send(t, "Bearer "+w.Token, request.method, w.APIURL+widgets+request.path, request.body)
	}
	var got []string
	for _, wrong := range w.Undescribed() {
		_, what, _ := strings.Cut(wrong, "}: ")
		if what == "" {
			_, what, _ = strings.Cut(wrong, ": ")
		}
		what, _, _ = strings.Cut(what, ": json")
		got = append(got, what)
	}
	want := []string{
		"there is no parameter heads", "the body lacks head", "the body has no field titel", "the body's title is none of string", "the body is no object",
		"the forge knows no such call",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReviewCommentIsDescribed lists one, which the other calls leave out.
func TestReviewCommentIsDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	w.repo.AddReviewComment(1, forgetest.ReviewComment{ReviewID: 7, Path: "main.txt", Line: 1, DiffHunk: "@@ -1 +1 @@", Body: "No."})
	if got := w.ask(t, "GET", widgets+"/pulls/1/comments", ""); !cmp.Equal(got.items(t, "body"), []any{"No."}) {
		t.Errorf("got %s", got.body)
	}
}
