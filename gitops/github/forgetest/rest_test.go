package forgetest_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

const widgets = "/repos/octo/widgets"

// TestAnswers goes through the calls in an order in which each has something to
// work on: issue 1, its comment, pull request 2.
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddIssue(forgetest.Issue{Title: "Wrong", Labels: []string{"bug", "help wanted"}, Comments: []forgetest.Comment{{Body: "Indeed."}}})
	comment := w.repo.Comments(1)[0].ID
	topic := w.git(t, "rev-parse", "feature/topic")
	tree, blob := w.git(t, "rev-parse", "main^{tree}"), w.git(t, "rev-parse", "main:main.txt")
	none := strings.Repeat("0", 40)
	long := strings.Repeat("ü", 65537)

	for _, c := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"repository", "GET", "", "", 200},
		{"branch", "GET", "/git/ref/heads/feature/topic", "", 200},
		{"half a branch's name", "GET", "/git/ref/heads/feature", "", 404},
		{"revision for a branch", "GET", "/git/ref/heads/main~0", "", 404},
		{"commit", "GET", "/git/commits/" + topic, "", 200},
		{"unknown commit", "GET", "/git/commits/" + strings.Repeat("0", 40), "", 404},
		{"option for a commit", "GET", "/git/commits/--all", "", 404},
		{"make a blob", "POST", "/git/blobs", `{"content": "aGk=", "encoding": "base64"}`, 201},
		{"make a tree", "POST", "/git/trees", `{"base_tree": "` + topic + `", "tree": [{"path": "a", "mode": "100755", "type": "blob", "sha": "` + blob + `"}]}`, 201},
		{"make a tree on none", "POST", "/git/trees", `{"base_tree": "` + none + `", "tree": []}`, 404},
		{"make a tree of a strange mode", "POST", "/git/trees", `{"tree": [{"path": "a", "mode": "100600", "type": "blob", "sha": "` + blob + `"}]}`, 422},
		{"make a commit", "POST", "/git/commits", `{"message": "M", "tree": "` + tree + `", "parents": ["` + topic + `"]}`, 201},
		{"make a commit of no tree", "POST", "/git/commits", `{"message": "M", "tree": "` + none + `"}`, 422},
		{"make a branch", "POST", "/git/refs", `{"ref": "refs/heads/made", "sha": "` + topic + `"}`, 201},
		{"make a branch twice", "POST", "/git/refs", `{"ref": "refs/heads/made", "sha": "` + topic + `"}`, 422},
		{"permission", "GET", "/collaborators/octocat/permission", "", 200},
		{"permission of a stranger", "GET", "/collaborators/stranger/permission", "", 200},
		{"issue", "GET", "/issues/1", "", 200},
		{"unknown issue", "GET", "/issues/99", "", 404},
		{"issue without a number", "GET", "/issues/one", "", 404},
		{"comments", "GET", "/issues/1/comments", "", 200},
		{"write a comment", "POST", "/issues/1/comments", `{"body": "More."}`, 201},
		{"blank comment", "POST", "/issues/1/comments", `{"body": " "}`, 422},
		{"long comment", "POST", "/issues/1/comments", `{"body": "` + long + `"}`, 422},
		{"change a comment", "PATCH", fmt.Sprintf("/issues/comments/%d", comment), `{"body": "No."}`, 200},
		{"change an unknown comment", "PATCH", "/issues/comments/1234567", `{"body": "No."}`, 404},
		{"labels", "POST", "/issues/1/labels", `{"labels": ["bug", "done"]}`, 200},
		{"assign", "POST", "/issues/1/assignees", `{"assignees": ["hubot"]}`, 201},
		{"pull request", "POST", "/pulls", `{"title": "T", "head": "feature/topic", "base": "main", "body": "B"}`, 201},
		{"pull request of the same branches", "POST", "/pulls", `{"title": "T", "head": "octo:feature/topic", "base": "main"}`, 422},
		{"pull request without title", "POST", "/pulls", `{"head": "feature/topic", "base": "main"}`, 422},
		{"pull request with no head", "POST", "/pulls", `{"title": "T", "head": "gone", "base": "main"}`, 422},
		{"pull request of a fork", "POST", "/pulls", `{"title": "T", "head": "other:feature/topic", "base": "main"}`, 422},
		{"pull request with no base", "POST", "/pulls", `{"title": "T", "head": "feature/topic", "base": "gone"}`, 422},
		{"pull request without commits", "POST", "/pulls", `{"title": "T", "head": "main", "base": "feature/topic"}`, 422},
		{"pull request with a long body", "POST", "/pulls", `{"title": "T", "head": "feature/topic", "base": "main", "body": "` + long + `"}`, 422},
		{"pull requests", "GET", "/pulls", "", 200},
		{"one pull request", "GET", "/pulls/2", "", 200},
		{"issue as pull request", "GET", "/pulls/1", "", 404},
		{"pull request as issue", "GET", "/issues/2", "", 200},
		{"comment a pull request", "POST", "/issues/2/comments", `{"body": "More."}`, 201},
		{"review comments", "GET", "/pulls/2/comments", "", 200},
		{"ask for reviews", "POST", "/pulls/2/requested_reviewers", `{"reviewers": ["hubot"], "team_reviewers": ["core"]}`, 201},
		{"ask the author for a review", "POST", "/pulls/2/requested_reviewers", `{"reviewers": ["OctoCat"]}`, 422},
		{"change a pull request", "PATCH", "/pulls/2", `{"title": "U", "body": ""}`, 200},
		{"close a pull request", "PATCH", "/pulls/2", `{"state": "closed"}`, 200},
		{"reopen a pull request", "PATCH", "/pulls/2", `{"state": "open"}`, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.ask(t, c.method, widgets+c.path, c.body)
			if got.status != c.status {
				t.Errorf("status %d, want %d: %s", got.status, c.status, got.body)
			}
			if got.header.Get("X-RateLimit-Limit") != "5000" || got.header.Get("X-RateLimit-Remaining") == "" {
				t.Errorf("the limits are missing in %v", got.header)
			}
		})
	}
}

func TestPaging(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var issue forgetest.Issue
	for i := range 250 {
		issue.Comments = append(issue.Comments, forgetest.Comment{Body: strconv.Itoa(i)})
	}
	w.repo.AddIssue(issue)
	comments := w.APIURL + widgets + "/issues/1/comments"
	for _, c := range []struct {
		name, query string
		count       int
		first, link string
	}{
		{"usual", "", 30, "0", `<` + comments + `?page=2>; rel="next", <` + comments + `?page=9>; rel="last"`},
		{"large", "?per_page=100", 100, "0", `<` + comments + `?page=2&per_page=100>; rel="next", <` + comments + `?page=3&per_page=100>; rel="last"`},
		{"too large", "?per_page=1000&page=3", 50, "200", `<` + comments + `?page=2&per_page=1000>; rel="prev", <` + comments + `?page=1&per_page=1000>; rel="first"`},
		{"middle", "?per_page=100&page=2", 100, "100", `<` + comments + `?page=1&per_page=100>; rel="prev", <` + comments +
			`?page=1&per_page=100>; rel="first", <` + comments + `?page=3&per_page=100>; rel="next", <` + comments + `?page=3&per_page=100>; rel="last"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.ask(t, "GET", widgets+"/issues/1/comments"+c.query, "")
			bodies := got.items(t, "body")
			if len(bodies) != c.count || bodies[0] != c.first {
				t.Errorf("%d comments from %v, want %d from %s", len(bodies), bodies[0], c.count, c.first)
			}
			if diff := cmp.Diff(c.link, got.header.Get("Link")); diff != "" {
				t.Error(diff)
			}
		})
	}
	if beyond := w.ask(t, "GET", widgets+"/issues/1/comments?page=99", "").items(t, "body"); len(beyond) != 0 {
		t.Errorf("beyond the last page: %v", beyond)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddIssue(forgetest.Issue{Title: "Wrong"})
	private := w.AddRepository("octo", "private")
	private.Private = true
	archived := w.AddRepository("octo", "archived")
	archived.Archived = true
	archived.AddIssue(forgetest.Issue{Title: "Old"})

	for _, c := range []struct {
		name, authorization, method, path string
		status                            int
		message                           any
	}{
		{"bearer", "Bearer " + w.Token, "GET", widgets, 200, nil},
		{"token", "token " + w.Token, "GET", widgets, 200, nil},
		{"none on a public repository", "", "GET", widgets, 200, nil},
		{"none on a private repository", "", "GET", "/repos/octo/private", 404, "Not Found"},
		{"right on a private repository", "Bearer " + w.Token, "GET", "/repos/octo/private", 200, nil},
		{"wrong on a public repository", "Bearer wrong", "GET", widgets, 401, "Bad credentials"},
		{"wrong scheme", "Digest " + w.Token, "GET", widgets, 401, "Bad credentials"},
		{"none on a write", "", "POST", widgets + "/issues/1/comments", 401, "Requires authentication"},
		{"none on a write to what is not there", "", "POST", "/repos/octo/nothing/issues/1/comments", 404, "Not Found"},
		{"right on an archived repository", "Bearer " + w.Token, "POST", "/repos/octo/archived/issues/1/comments", 403, "Repository was archived so is read-only."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.askAs(t, c.authorization, c.method, c.path, `{"body": "More."}`)
			if got.status != c.status || got.field(t, "message") != c.message {
				t.Errorf("got %d %v, want %d %v", got.status, got.field(t, "message"), c.status, c.message)
			}
		})
	}
}
