package github_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

const token = "ghs_0123456789abcdef"

// api is a server with one handler for each "METHOD /path" below /api/v3, and
// a client for it.
type api struct {
	*httptest.Server
	client     *github.Client
	repository forge.Repository // o/r
	asked      []string         // METHOD path?query
}

// checkDescribed fails the test where GitHub's description doesn't have the
// request.
func checkDescribed(t *testing.T, req *http.Request, path string) {
	t.Helper()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	asked := req.Clone(req.Context())
	asked.URL.Path = path
	must.None(t, forgetest.Wrong(asked, body), req.Method, req.URL)
}

func newAPI(t *testing.T, handlers map[string]http.HandlerFunc) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a.asked = append(a.asked, req.Method+" "+req.URL.RequestURI())
		must.Same(t, "Bearer "+token, req.Header.Get("Authorization"), req.Method, req.URL)
		path := strings.TrimPrefix(req.URL.Path, "/api/v3")
		if !strings.HasPrefix(path, "/repositories/") { // where GitHub itself redirects to, by number, undescribed
			checkDescribed(t, req, path)
		}
		handler, known := handlers[req.Method+" "+path]
		if !known {
			answer(http.StatusNotFound, `{"message": "Not Found"}`)(w, req)
			return
		}
		handler(w, req)
	}))
	t.Cleanup(a.Close)
	a.client = newClient(t, a.URL+"/api/v3", token)
	a.repository = a.client.Repository("o/r")
	return a
}

func newClient(t *testing.T, apiURL, token string) *github.Client {
	t.Helper()
	return must.Get(github.New(github.Options{APIURL: apiURL, Token: token, Clock: forgetest.AtOnce{}}))(t)
}

func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// take answers like answer and stores the body of the request.
func take(t *testing.T, into *map[string]any, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		must.Is(t, nil, json.NewDecoder(req.Body).Decode(into), "the body of", req.URL)
		answer(status, body)(w, req)
	}
}

func TestHeaders(t *testing.T) {
	var header http.Header
	a := newAPI(t, map[string]http.HandlerFunc{"GET /repos/o/r": func(w http.ResponseWriter, req *http.Request) {
		header = req.Header
		answer(200, `{"full_name": "o/r", "default_branch": "main"}`)(w, req)
	}})
	must.Get(a.repository.DefaultBranch(t.Context()))(t)
	if header.Get("User-Agent") != "agent-ci" || header.Get("X-GitHub-Api-Version") == "" {
		t.Errorf("headers = %v", header)
	}
}

func TestBranch(t *testing.T) {
	a := newAPI(t, map[string]http.HandlerFunc{
		"GET /repos/o/r/git/ref/heads/agent-ci/x": answer(200, `{"ref": "refs/heads/agent-ci/x", "object": {"type": "commit", "sha": "c0"}}`),
		"GET /repos/o/r/git/commits/c0": answer(200, `{"sha": "c0", "tree": {"sha": "t0"}, "parents": [{"sha": "p0"}],
			"message": "m", "author": {"name": "A", "email": "a@example.com", "date": "2026-01-02T03:04:05Z"},
			"committer": {"name": "B", "email": "b@example.com", "date": "2026-01-02T03:04:06Z"}}`),
		"GET /repos/o/empty/git/ref/heads/main":  answer(409, `{"message": "Git Repository is empty."}`),
		"GET /repos/o/hidden/git/ref/heads/main": answer(401, `{"message": "Bad credentials"}`),
	})
	got := must.Get(a.repository.Branch(t.Context(), "agent-ci/x"))(t)
	want := &forge.Commit{
		SHA: "c0", Tree: "t0", Parents: []string{"p0"}, Message: "m", Author: "A <a@example.com>", Committer: "B <b@example.com>",
		Authored: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Committed: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
	}
	must.Same(t, want, got, "commit")
	for _, name := range []string{"r", "empty"} {
		if got, err := a.client.Repository("o/"+name).Branch(t.Context(), "main"); got != nil || err != nil {
			t.Errorf("%s: Branch = %v, %v, want nothing", name, got, err)
		}
	}
	must.Same(t, forge.Unauthorized, forge.KindOf(must.Err(a.client.Repository("o/hidden").Branch(t.Context(), "main"))))
}

func TestBoundsComments(t *testing.T) {
	a := newAPI(t, nil)
	pages := 0
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.URL.Path, "/comments") {
			answer(200, `{"number": 7, "comments": 5000}`)(w, req)
			return
		}
		pages++
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, a.URL, req.URL.Path, pages+1))
		answer(200, "["+strings.TrimSuffix(strings.Repeat(`{"body":"x"},`, 99), ",")+"]")(w, req)
	})
	issue := must.Get(a.repository.Issue(t.Context(), 7))(t)
	if len(issue.Comments) != forge.MaxComments || issue.MoreComments != 5000-forge.MaxComments || pages != 11 {
		t.Errorf("%d comments, %d more, %d pages", len(issue.Comments), issue.MoreComments, pages)
	}
}

func TestFollowsMovedIssue(t *testing.T) {
	a := newAPI(t, map[string]http.HandlerFunc{
		"GET /repos/o/r/issues/7":      answer(301, `{}`, "Location", "/api/v3/repositories/5/issues/1"),
		"GET /repositories/5/issues/1": answer(200, `{"number": 1, "html_url": "https://example.com/o/other/issues/1"}`),
	})
	_, err := a.repository.Issue(t.Context(), 7)
	if forge.KindOf(err) != forge.NotFound || !strings.Contains(err.Error(), "https://example.com/o/other/issues/1") {
		t.Errorf("err = %v, want one that says where the issue is", err)
	}
}

func TestFindPullRequest(t *testing.T) {
	pull := func(number int, state, owner, ref string) string {
		return fmt.Sprintf(`{"number": %d, "state": %q, "head": {"ref": %q, "sha": "s", "user": {"login": %q}}, "base": {"ref": "main"}}`, number, state, ref, owner)
	}
	elsewhere := func(pull string) string { return strings.Replace(pull, `"ref": "main"`, `"ref": "release"`, 1) }
	cases := []struct {
		name  string
		pulls []string
		want  int // 0: none
	}{
		{"none", nil, 0},
		{"open into this base before another", []string{elsewhere(pull(9, "open", "o", "x")), pull(4, "open", "o", "x")}, 4},
		{"open into another base", []string{elsewhere(pull(3, "open", "o", "x")), pull(4, "closed", "o", "x")}, 3},
		{"closed into another base", []string{elsewhere(pull(3, "closed", "o", "x"))}, 0},
		{"open before newer closed", []string{pull(9, "closed", "o", "x"), pull(4, "open", "o", "x")}, 4},
		{"newest closed", []string{pull(3, "closed", "o", "x"), pull(5, "closed", "O", "x")}, 5},
		{"of another branch or owner", []string{pull(1, "open", "o", "y"), pull(2, "open", "p", "x")}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t, map[string]http.HandlerFunc{"GET /repos/o/r/pulls": answer(200, "["+strings.Join(c.pulls, ",")+"]")})
			got := must.Get(a.repository.FindPullRequest(t.Context(), "x", "main"))(t)
			number := 0
			if got != nil {
				number = got.Number
			}
			must.Same(t, c.want, number, "found")
			want := []string{"GET /api/v3/repos/o/r/pulls?direction=desc&head=o%3Ax&per_page=100&sort=created&state=all"}
			must.Same(t, want, a.asked, "requests")
		})
	}
}

// A repository that was transferred is found by its old name, and so are its pull requests.
func TestFindsPullRequestOfMovedRepository(t *testing.T) {
	there := `{"number": 4, "state": "open", "head": {"ref": "x", "user": {"login": "new"}, "repo": {"full_name": "new/s"}}, "base": {"ref": "main", "repo": {"full_name": "new/s"}}}`
	a := newAPI(t, map[string]http.HandlerFunc{
		"GET /repos/o/r": answer(301, `{}`, "Location", "/api/v3/repositories/5"),
		"GET /repos/o/r/pulls": func(w http.ResponseWriter, req *http.Request) {
			answer(301, `{}`, "Location", "/api/v3/repositories/5/pulls?"+req.URL.RawQuery)(w, req)
		},
		"GET /repositories/5": answer(200, `{"full_name": "new/s", "owner": {"login": "new"}}`),
		"GET /repositories/5/pulls": func(w http.ResponseWriter, req *http.Request) {
			body := "[]"
			if req.URL.Query().Get("head") == "new:x" {
				body = "[" + there + "]"
			}
			answer(200, body)(w, req)
		},
	})
	got := must.Get(a.repository.FindPullRequest(t.Context(), "x", "main"))(t)
	if got == nil || got.Number != 4 || got.HeadRepository != "o/r" {
		t.Errorf("got %+v", got)
	}
}

func TestSetDraft(t *testing.T) {
	var sent map[string]any
	a := newAPI(t, nil)
	reply := `{"data": {}}`
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		must.Same(t, "/api/graphql", req.URL.Path, "with Authorization")
		must.Same(t, "Bearer "+token, req.Header.Get("Authorization"), "with Authorization")
		take(t, &sent, 200, reply)(w, req)
	})
	for _, draft := range []bool{true, false} {
		pull := &forge.PullRequest{Number: 8, NodeID: "PR_1", Draft: !draft}
		if err := a.repository.SetDraft(t.Context(), pull, draft); err != nil || pull.Draft != draft {
			t.Errorf("SetDraft(%v): %v, Draft = %v", draft, err, pull.Draft)
		}
		mutation := map[bool]string{true: "convertPullRequestToDraft", false: "markPullRequestReadyForReview"}[draft]
		must.Contain(t, fmt.Sprint(sent["query"]), mutation)
		must.Same[any](t, map[string]any{"id": "PR_1"}, sent["variables"], "variables")
	}
	for message, want := range map[string]forge.Kind{
		`{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}`: forge.Forbidden,
		`{"type": "NOT_FOUND", "message": "Could not resolve to a node"}`:            forge.NotFound,
		`{"message": "You have exceeded a secondary rate limit."}`:                   forge.RateLimited,
		`{"message": "Parse error"}`:                                                 forge.Invalid,
	} {
		reply = `{"errors": [` + message + `]}`
		pull := &forge.PullRequest{NodeID: "PR_1", Draft: true}
		if err := a.repository.SetDraft(t.Context(), pull, false); forge.KindOf(err) != want || !pull.Draft {
			t.Errorf("%s: err = %v, want kind %s and no change", message, err, want)
		}
	}
}

func TestReportsUnassignedAccounts(t *testing.T) {
	a := newAPI(t, map[string]http.HandlerFunc{"POST /repos/o/r/issues/8/assignees": answer(201, `{"number": 8, "assignees": [{"login": "A"}]}`)})
	err := a.repository.AddAssignees(t.Context(), 8, []string{"a", "stranger"})
	must.Same(t, forge.Invalid, forge.KindOf(err))
	must.Fail(t, "assign stranger", err)
}

func TestErrors(t *testing.T) {
	cases := []struct {
		name   string
		answer http.HandlerFunc
		want   forge.Kind
		words  []string
	}{
		{"bad token", answer(401, `{"message": "Bad credentials"}`), forge.Unauthorized, []string{"Bad credentials", "401", "set GITHUB_TOKEN"}},
		{"forbidden", answer(403, `{"message": "Resource not accessible by integration"}`), forge.Forbidden, []string{"permission pull-requests: write"}},
		{"archived", answer(403, `{"message": "Repository was archived so is read-only."}`), forge.Forbidden, []string{"unarchive"}},
		{"locked", answer(403, `{"message": "Unable to create comment because issue is locked."}`), forge.Forbidden, []string{"unlock"}},
		{"pull requests not permitted", answer(403, `{"message": "GitHub Actions is not permitted to create or approve pull requests."}`), forge.NotPermitted, []string{"Settings, Actions, General"}},
		{"not found", answer(404, `{"message": "Not Found"}`), forge.NotFound, []string{"check the name"}},
		{"gone", answer(410, `{"message": "This issue was deleted"}`), forge.NotFound, []string{"deleted"}},
		{
			"invalid", answer(422, `{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid"}, {"code": "custom", "message": "No commits between main and x"}]}`),
			forge.Invalid,
			[]string{"Validation Failed; PullRequest head invalid; No commits between main and x"},
		},
		{"primary limit", answer(403, `{"message": "API rate limit exceeded"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4102444800"), forge.RateLimited, []string{"try again in"}},
		{"primary limit as 429", answer(429, `{"message": "API rate limit exceeded"}`, "X-RateLimit-Remaining", "0"), forge.RateLimited, []string{"429"}},
		{"secondary limit", answer(403, `{"message": "You have exceeded a secondary rate limit"}`, "Retry-After", "90"), forge.RateLimited, []string{"try again in 1m30s"}},
		{"secondary limit by its page", answer(403, `{"message": "slow down", "documentation_url": "https://docs.github.com/rest#secondary-rate-limits"}`, "Retry-After", "5"), forge.RateLimited, []string{"slow down"}},
		{"secondary limit as 429", answer(429, `{}`, "Retry-After", "5"), forge.RateLimited, []string{"Too Many Requests", "5s"}},
		{"server error", answer(500, `{}`), forge.Unavailable, []string{"500", "try again later"}},
		{"bad gateway in HTML", answer(502, `<html>`), forge.Unavailable, []string{"Bad Gateway"}},
		{"HTML", answer(200, `<html>`), forge.Other, []string{"not the JSON", "check the API URL"}},
		{"cut reply", answer(200, `{"number": `), forge.Other, []string{"not the JSON"}},
		{"empty", answer(201, ``), forge.Other, []string{"not the JSON", "it does not say what it is about"}},
		{"empty object", answer(201, `{}`), forge.Other, []string{"it does not say what it is about"}},
		{"broken reply", answer(200, `{"number": `, "Content-Length", "100"), forge.Unavailable, []string{"the reply ended early", "try again later"}},
		{"another kind", answer(200, `{"number": "7"}`), forge.Other, []string{"number is a string, not a whole number"}},
		{"escape sequences", answer(422, `{"message": "a\u001b[31m\n::error::b"}`), forge.Invalid, []string{"a[31m ::error::b ("}},
		{"token repeated", answer(422, `{"message": "token `+token+` and `+token[:4]+`\u200b`+token[4:]+`"}`), forge.Invalid, []string{"token *** and ***"}},
		{"redirected write", answer(301, `{"message": "Moved Permanently"}`, "Location", "/elsewhere"), forge.Other, []string{"Moved Permanently"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t, map[string]http.HandlerFunc{"POST /repos/o/r/pulls": c.answer})
			_, err := a.repository.CreatePullRequest(t.Context(), forge.NewPullRequest{Head: "x"})
			must.Same(t, c.want, forge.KindOf(err), "kind", err)
			var failed *forge.Error
			if !errors.As(err, &failed) || failed.Remedy == "" || !strings.HasSuffix(err.Error(), failed.Remedy) {
				t.Fatalf("err = %v, want one that ends in what to do", err)
			}
			must.Contain(t, err.Error(), append(c.words, "create the pull request from x in o/r: ")...)
			must.Same(t, false, strings.Contains(err.Error(), token), "err shows the token", err)
		})
	}
}

// A reply without a list, or without the object that was asked for, is no result.
func TestRefusesEmptyReplies(t *testing.T) {
	sha := strings.Repeat("c", 40)
	for name, ask := range map[string]func(r forge.Repository) error{
		"GET /repos/o/r":                                func(r forge.Repository) error { return must.Err(r.DefaultBranch(t.Context())) },
		"GET /repos/o/r/pulls":                          func(r forge.Repository) error { return must.Err(r.FindPullRequest(t.Context(), "x", "main")) },
		"GET /repos/o/r/issues/1/comments":              func(r forge.Repository) error { return must.Err(r.Comments(t.Context(), 1)) },
		"GET /repos/o/r/commits/" + sha + "/check-runs": func(r forge.Repository) error { return must.Err(r.Checks(t.Context(), sha)) },
		"POST /repos/o/r/git/trees": func(r forge.Repository) error {
			return must.Err(r.CreateTree(t.Context(), sha, make([]forge.TreeEdit, 1)))
		},
		"POST /repos/o/r/pulls/1/reviews": func(r forge.Repository) error {
			return must.Err(r.CreateReview(t.Context(), 1, forge.NewReview{}))
		},
	} {
		a := newAPI(t, map[string]http.HandlerFunc{name: answer(200, "")})
		must.Contain(t, fmt.Sprint(ask(a.repository)), "it does not say what it is about")
	}
}

func TestClassifiesRefusals(t *testing.T) {
	for message, want := range map[string]error{
		"A pull request already exists for o:x.":                   forge.ErrPullRequestExists,
		"Draft pull requests are not supported in this repository": forge.ErrNoDrafts,
	} {
		a := newAPI(t, map[string]http.HandlerFunc{"POST /repos/o/r/pulls": answer(422, `{"message": "Validation Failed", "errors": [{"message": "`+message+`"}]}`)})
		_, err := a.repository.CreatePullRequest(t.Context(), forge.NewPullRequest{Head: "x"})
		if !errors.Is(err, want) || forge.KindOf(err) != forge.Invalid || strings.Contains(err.Error(), want.Error()) {
			t.Errorf("err = %v, want one that is %q", err, want)
		}
	}
}

func TestRemembersSpentLimit(t *testing.T) {
	spent := answer(403, `{"message": "API rate limit exceeded"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4102444800")
	a := newAPI(t, map[string]http.HandlerFunc{"GET /repos/o/r": spent})
	for range 2 {
		_, err := a.repository.DefaultBranch(t.Context())
		var failed *forge.Error
		if !errors.As(err, &failed) || failed.Kind != forge.RateLimited || failed.RetryAfter < time.Hour {
			t.Errorf("err = %#v, want kind %s and when to try again", err, forge.RateLimited)
		}
	}
	must.Same(t, 1, len(a.asked))
}

func TestNetworkErrors(t *testing.T) {
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(unknown.Close)
	for _, c := range []struct{ name, url, words string }{
		{"nobody listens", "http://127.0.0.1:1", "try again later"},
		{"unknown certificate", unknown.URL, "unknown authority; SSL_CERT_FILE can name a file with further authorities (POST " + unknown.URL + "/repos/o/r/pulls)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newClient(t, c.url, token).Repository("o/r").CreatePullRequest(t.Context(), forge.NewPullRequest{})
			must.Same(t, forge.Unavailable, forge.KindOf(err), err, c.words)
			must.Fail(t, c.words, err)
			must.Same(t, c.name == "unknown certificate", strings.HasSuffix(err.Error(), ")"), "advice after the message", err)
		})
	}
}

func TestReportsCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := newAPI(t, map[string]http.HandlerFunc{"GET /repos/o/r": func(_ http.ResponseWriter, req *http.Request) {
		cancel()
		<-req.Context().Done()
	}})
	must.Is(t, context.Canceled, must.Err(a.repository.DefaultBranch(ctx)))
}

func TestTokenStaysWithItsHost(t *testing.T) {
	var leaked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		leaked = append(leaked, req.Header.Get("Authorization"))
		answer(200, `{"number": 7}`)(w, req)
	}))
	t.Cleanup(elsewhere.Close)
	away := answer(302, ``, "Location", elsewhere.URL+"/api/v3/x")
	a := newAPI(t, map[string]http.HandlerFunc{
		"GET /repos/o/r": away, "GET /repos/o/r/issues/7": away, "POST /repos/o/r/pulls": answer(307, ``, "Location", elsewhere.URL),
	})
	must.Fail(t, "another host", must.Err(a.repository.DefaultBranch(t.Context())))
	must.Fail(t, "", must.Err(a.repository.Issue(t.Context(), 7)), "an issue was taken from another host")
	must.Fail(t, "", must.Err(a.repository.CreatePullRequest(t.Context(), forge.NewPullRequest{Body: "private"})), "a pull request was created on another host")
	must.None(t, leaked, "requests went to another host with Authorization")
}

func TestRefusesNames(t *testing.T) {
	a := newAPI(t, nil)
	for _, c := range []struct{ repository, branch string }{
		{"../r", "main"},
		{"o/..", "main"},
		{"o/p/r", "main"},
		{"o/r?x=y", "main"},
		{"/r", "main"},
		{"o", "main"},
		{"", "main"},
		{"o/r", "../../../../user"},
		{"o/r", "a//b"},
	} {
		must.Same(t, forge.Invalid, forge.KindOf(must.Err(a.client.Repository(c.repository).Branch(t.Context(), c.branch))), c.repository, c.branch)
	}
	must.None(t, a.asked, "requests were made")
}

func TestNewRefuses(t *testing.T) {
	for name, options := range map[string]github.Options{
		"plain http":       {APIURL: "http://ghe.example.com/api/v3"},
		"a password":       {APIURL: "https://u:p@ghe.example.com"},
		"a query":          {APIURL: "https://ghe.example.com/?x=y"},
		"no URL":           {APIURL: "ghe.example.com"},
		"another protocol": {APIURL: "file:///etc"},
	} {
		if client, err := github.New(options); err == nil || client != nil {
			t.Errorf("%s: New = %v, %v, want an error", name, client, err)
		}
	}
}
