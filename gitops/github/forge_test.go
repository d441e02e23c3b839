package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// history has the branches main and feature/topic, which is one commit ahead.
const history = `commit refs/heads/main
mark :1
committer Tester <tester@example.invalid> 1767323045 +0000
data 5
Begin
M 100644 inline greet.txt
data 5
hello
commit refs/heads/feature/topic
mark :2
committer Tester <tester@example.invalid> 1767323105 +0000
data 5
Go on
from :1
M 100644 inline greet.txt
data 7
goodbye
`

// newForge is a forge with the repository octo/widgets, and a client for it.
func newForge(t *testing.T) (*forgetest.Forge, *forgetest.Repository, *github.Client) {
	t.Helper()
	forge := forgetest.New(t, forgetest.Options{})
	t.Cleanup(func() {
		if wrong := forge.Undescribed(); len(wrong) > 0 {
			t.Errorf("GitHub's description does not have:\n%s", strings.Join(wrong, "\n"))
		}
	})
	repository := forge.AddRepository("octo", "widgets")
	git(t, repository, history, "fast-import", "--quiet")
	return forge, repository, forgeClient(t, forge, forge.Token)
}

func revision(t *testing.T, repository *forgetest.Repository, name string) string {
	t.Helper()
	return git(t, repository, "", "rev-parse", name)
}

// git runs git in the bare repository.
func git(t *testing.T, repository *forgetest.Repository, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = repository.Dir, strings.NewReader(input)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

func forgeClient(t *testing.T, forge *forgetest.Forge, token string) *github.Client {
	t.Helper()
	client, err := github.New(github.Options{APIURL: forge.APIURL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestForgeRepository(t *testing.T) {
	forge, repository, client := newForge(t)
	repository.DefaultBranch, repository.Private, repository.Fork = "trunk", true, true
	got, err := client.Repository(t.Context(), "octo", "widgets")
	want := &github.Repository{
		DefaultBranch: "trunk", HTMLURL: forge.URL + "/octo/widgets", CloneURL: forge.URL + "/octo/widgets.git",
		Private: true, Fork: true,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestForgeBranch(t *testing.T) {
	forge, repository, client := newForge(t)
	forge.AddRepository("octo", "empty")
	topic, err := client.Branch(t.Context(), "octo", "widgets", "feature/topic")
	want := &github.Commit{
		SHA: revision(t, repository, "feature/topic"), Tree: revision(t, repository, "feature/topic^{tree}"),
		Parents: []string{revision(t, repository, "main")}, Message: "Go on", Author: "Tester <tester@example.invalid>",
	}
	if diff := cmp.Diff(want, topic); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, absent := range []struct{ name, branch string }{{"widgets", "feature"}, {"empty", "main"}} {
		if got, err := client.Branch(t.Context(), "octo", absent.name, absent.branch); got != nil || err != nil {
			t.Errorf("%s in %s: %+v, %v, want neither", absent.branch, absent.name, got, err)
		}
	}
}

func TestForgeIssueWithPagesOfComments(t *testing.T) {
	forge, repository, client := newForge(t)
	issue := forgetest.Issue{
		Title: "Greet", Body: "Say <b>hello</b>\n", Labels: []string{"bug"},
		Author: forgetest.User{Login: "renovate[bot]", ID: 29139614, Type: "Bot"}, Association: "CONTRIBUTOR",
	}
	for i := range 250 {
		issue.Comments = append(issue.Comments, forgetest.Comment{Body: fmt.Sprint(i)})
	}
	repository.AddIssue(issue)
	got, err := client.Issue(t.Context(), "octo", "widgets", 1)
	if err != nil {
		t.Fatal(err)
	}
	comments := got.Comments
	got.Comments = nil
	want := &github.Issue{
		Number: 1, Title: "Greet", Body: "Say <b>hello</b>\n", State: "open", URL: forge.URL + "/octo/widgets/issues/1",
		Author: github.User{Login: "renovate[bot]", ID: 29139614, Bot: true}, Association: "CONTRIBUTOR",
		Labels: []string{"bug"}, CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.CreatedAt.IsZero() {
		t.Errorf("%s, created at %v", diff, got.CreatedAt)
	}
	for i, comment := range comments {
		if comment.Body != fmt.Sprint(i) || comment.Author.Login != "octocat" || comment.Association != "OWNER" {
			t.Fatalf("comment %d is %+v", i, comment)
		}
	}
	if requests := forge.Requests(); len(comments) != 250 || len(requests) != 4 {
		t.Errorf("%d comments in %d requests, want 250 in 4", len(comments), len(requests))
	}
}

func TestForgePullRequest(t *testing.T) {
	_, repository, client := newForge(t)
	repository.AddMilestone("v1")
	ctx := t.Context()
	if none, err := client.FindPullRequest(ctx, "octo", "widgets", "feature/topic", "main"); none != nil || err != nil {
		t.Fatalf("before there is one: %+v, %v", none, err)
	}
	pull, err := client.CreatePullRequest(ctx, "octo", "widgets", github.NewPullRequest{
		Title: "Greet", Head: "feature/topic", Base: "main", Body: "Fixes #1", Draft: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := client.FindPullRequest(ctx, "octo", "widgets", "feature/topic", ""); err != nil || !cmp.Equal(found, pull) {
		t.Errorf("%v: found %s", err, cmp.Diff(pull, found))
	}
	title, body := "Greet all", "More"
	if _, err := client.UpdatePullRequest(ctx, "octo", "widgets", pull.Number, github.PullRequestUpdate{Title: &title, Body: &body}); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		client.SetDraft(ctx, pull, false),
		client.AddLabels(ctx, "octo", "widgets", pull.Number, []string{"bug", "agent"}),
		client.AddAssignees(ctx, "octo", "widgets", pull.Number, []string{"hubot"}),
		client.RequestReviewers(ctx, "octo", "widgets", pull.Number, []string{"monalisa"}, []string{"core"}),
		client.SetMilestone(ctx, "octo", "widgets", pull.Number, "v1"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []forgetest.PullRequest{{
		Number: 1, NodeID: pull.NodeID, State: "open", Title: title, Body: body, Head: "feature/topic", Base: "main",
		Labels: []string{"bug", "agent"}, Assignees: []string{"hubot"}, Reviewers: []string{"monalisa"}, Teams: []string{"core"}, Milestone: "v1",
	}}
	if diff := cmp.Diff(want, repository.PullRequests()); diff != "" {
		t.Error(diff)
	}
}

func TestForgeFindsTheOpenOrElseTheNewest(t *testing.T) {
	_, _, client := newForge(t)
	ctx := t.Context()
	closed := "closed"
	for range 2 {
		pull, err := client.CreatePullRequest(ctx, "octo", "widgets", github.NewPullRequest{Title: "Greet", Head: "feature/topic", Base: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := client.FindPullRequest(ctx, "octo", "widgets", "feature/topic", "main"); err != nil || found.Number != pull.Number {
			t.Errorf("found %+v, %v, want the open #%d", found, err, pull.Number)
		}
		if _, err := client.UpdatePullRequest(ctx, "octo", "widgets", pull.Number, github.PullRequestUpdate{State: &closed}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := client.FindPullRequest(ctx, "octo", "widgets", "feature/topic", "main"); err != nil || found.Number != 2 || found.State != "closed" {
		t.Errorf("found %+v, %v, want the closed #2", found, err)
	}
}

func TestForgeMergedPullRequestInAList(t *testing.T) {
	_, repository, client := newForge(t)
	if _, err := client.CreatePullRequest(t.Context(), "octo", "widgets", github.NewPullRequest{Title: "Greet", Head: "feature/topic", Base: "main"}); err != nil {
		t.Fatal(err)
	}
	repository.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State, p.Merged = "closed", true })
	if found, err := client.FindPullRequest(t.Context(), "octo", "widgets", "feature/topic", "main"); err != nil || !found.Merged {
		t.Errorf("found %+v, %v, want a merged one", found, err)
	}
}

func TestForgeRefusals(t *testing.T) {
	create := func(head, base, body string) func(context.Context, *github.Client) error {
		return func(ctx context.Context, client *github.Client) error {
			_, err := client.CreatePullRequest(ctx, "octo", "widgets", github.NewPullRequest{Title: "Greet", Head: head, Base: base, Body: body})
			return err
		}
	}
	good := create("feature/topic", "main", "")
	archive := func(_ *forgetest.Forge, repository *forgetest.Repository) { repository.Archived = true }
	for _, c := range []struct {
		name    string
		token   string // "" means the right one, "-" none
		prepare func(*forgetest.Forge, *forgetest.Repository)
		do      func(context.Context, *github.Client) error
		kind    github.Kind
		words   string
	}{
		{"wrong token", "wrong", nil, good, github.Unauthorized, "Bad credentials"},
		{"no token", "-", nil, good, github.Unauthorized, "Requires authentication"},
		{"private without token", "-", func(_ *forgetest.Forge, r *forgetest.Repository) { r.Private = true }, good, github.NotFound, "private repository"},
		{"archived", "", archive, good, github.Forbidden, "archived"},
		{"no such head", "", nil, create("gone", "main", ""), github.Invalid, "PullRequest head invalid"},
		{"no such base", "", nil, create("feature/topic", "gone", ""), github.Invalid, "PullRequest base invalid"},
		{"no commits", "", nil, create("main", "feature/topic", ""), github.Invalid, "No commits between feature/topic and main"},
		{"body too long", "", nil, create("feature/topic", "main", strings.Repeat("x", 65537)), github.Invalid, "too long"},
		{"not permitted", "", func(forge *forgetest.Forge, _ *forgetest.Repository) {
			forge.On("POST", "/repos/octo/widgets/pulls", forgetest.Reply{
				Status: http.StatusForbidden, Body: `{"message": "GitHub Actions is not permitted to create or approve pull requests."}`,
			}, 1)
		}, good, github.NotPermitted, "Settings, Actions, General"},
		{"limited for no time at all", "", func(forge *forgetest.Forge, _ *forgetest.Repository) {
			forge.On("POST", "/repos/octo/widgets/pulls", forgetest.Reply{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}}, 1)
		}, good, github.RateLimited, "try again later"},
		{"stranger as assignee", "", func(_ *forgetest.Forge, r *forgetest.Repository) {
			r.AddIssue(forgetest.Issue{Title: "Greet"})
			r.Collaborators = []string{"hubot"}
		}, func(ctx context.Context, client *github.Client) error {
			return client.AddAssignees(ctx, "octo", "widgets", 1, []string{"hubot", "stranger"})
		}, github.Invalid, "did not assign stranger"},
		{"draft of an unknown pull request", "", nil, func(ctx context.Context, client *github.Client) error {
			return client.SetDraft(ctx, &github.PullRequest{Number: 1, NodeID: "PR_none"}, true)
		}, github.NotFound, "Could not resolve to a node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			forge, repository, client := newForge(t)
			if c.token != "" {
				client = forgeClient(t, forge, strings.TrimPrefix(c.token, "-"))
			}
			if c.prepare != nil {
				c.prepare(forge, repository)
			}
			err := c.do(t.Context(), client)
			if github.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v of kind %q, want kind %q and %q in it", err, github.KindOf(err), c.kind, c.words)
			}
			if requests := forge.Requests(); len(requests) != 1 {
				t.Errorf("%d requests, want 1", len(requests))
			}
		})
	}
}

func TestForgeTroubleThatPasses(t *testing.T) {
	forge, repository, client := newForge(t)
	repository.AddIssue(forgetest.Issue{Title: "Greet"})
	forge.On("GET", "/repos/octo/widgets/issues/1", forgetest.Reply{Status: http.StatusBadGateway, Body: "<html>"}, 1)
	forge.On("GET", "/repos/octo/widgets/issues/1", forgetest.Reply{
		Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"1"}}, Body: `{"message": "You have exceeded a secondary rate limit."}`,
	}, 1)
	issue, err := client.Issue(t.Context(), "octo", "widgets", 1)
	if err != nil || issue.Title != "Greet" || len(forge.Requests()) != 3 {
		t.Errorf("got %+v, %v after %d requests, want the issue after 3", issue, err, len(forge.Requests()))
	}
}

func TestForgeRenamedRepository(t *testing.T) {
	forge, _, client := newForge(t)
	moved := http.Header{"Location": {forge.APIURL + "/repos/octo/widgets"}}
	forge.On("GET", "/repos/octo/gadgets", forgetest.Reply{Status: http.StatusMovedPermanently, Header: moved}, 1)
	got, err := client.Repository(t.Context(), "octo", "gadgets")
	if err != nil || got.HTMLURL != forge.URL+"/octo/widgets" {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, request := range forge.Requests() {
		if !request.Authorized {
			t.Errorf("%s %s without the token", request.Method, request.Path)
		}
	}
}

// TestForgeOnAnotherHost redirects from one forge to another, which has the
// same repository and the same token.
func TestForgeOnAnotherHost(t *testing.T) {
	forge, repository, client := newForge(t)
	other, _, _ := newForge(t)
	repository.AddIssue(forgetest.Issue{Title: "Greet"})
	away := forgetest.Reply{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {other.APIURL + "/repos/octo/widgets"}}}
	forge.On("GET", "/repos/octo/*", away, 1)
	forge.On("POST", "/repos/octo/widgets/issues/1/labels", away, 1)
	if got, err := client.Repository(t.Context(), "octo", "widgets"); err == nil {
		t.Errorf("another host's answer is taken: %+v", got)
	}
	if err := client.AddLabels(t.Context(), "octo", "widgets", 1, []string{"bug"}); err == nil {
		t.Error("another host's answer to a write is taken")
	}
	if requests := other.Requests(); len(requests) != 0 {
		t.Errorf("another host is asked: %+v", requests)
	}
}

func TestForgeWaitEndsWithTheContext(t *testing.T) {
	forge, _, client := newForge(t)
	forge.On("GET", "/repos/octo/widgets", forgetest.Reply{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"50"}}}, 9)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := client.Repository(ctx, "octo", "widgets")
	if !errors.Is(err, context.DeadlineExceeded) || len(forge.Requests()) > 1 {
		t.Errorf("got %v after %d requests, want the end of the context after 1", err, len(forge.Requests()))
	}
}
