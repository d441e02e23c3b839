package forgetest_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func TestReportsUndescribedRequests(t *testing.T) {
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/pulls?head=octo:main&state=all", "", ""},
		{"GET", "/pulls?heads=octo:main", "", "there is no parameter heads"},
		{"POST", "/pulls", `{"title": "T", "head": "feature/topic", "base": "main", "draft": true}`, ""},
		{"POST", "/pulls", `{"title": "T", "base": "main"}`, "the body lacks head"},
		{"PATCH", "/pulls/1", `{"titel": "T"}`, "the body has no field titel"},
		{"PATCH", "/pulls/1", `{"title": 7}`, "the body's title is none of string"},
		{"POST", "/issues/1/labels", `7`, "the body is no object"},
		{"GET", "/stargazers", "", "there is no such call"},
	} {
		got := strings.Join(forgetest.Wrong(httptest.NewRequest(c.method, "/repos/octo/widgets"+c.path, nil), []byte(c.body)), "\n")
		if got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want+":")) {
			t.Errorf("%s %s %s: got %q, want %q", c.method, c.path, c.body, got, c.want)
		}
	}
}
