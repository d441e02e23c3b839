package forgetest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
