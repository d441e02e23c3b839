package forgetest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddIssue(forgetest.Issue{Title: "Wrong"})
	w.On("GET", widgets+"/issues/1", forgetest.Reply{Status: 429, Header: http.Header{"retry-after": {"7"}}, Body: `{"message":"Slow down"}`}, 2)
	w.On("GET", "/repos/octo/*/issues/?", forgetest.Reply{Body: `{"message":"Second"}`}, 1)
	w.On("POST", widgets+"/issues/1", forgetest.Reply{Status: 500}, 1)

	var got []string
	for range 4 {
		reply := w.send(t, "", "GET", w.APIURL+widgets+"/issues/1?page=1", "")
		got = append(got, fmt.Sprint(reply.status, " ", reply.header.Get("Retry-After"), " ", reply.field(t, "message")))
	}
	want := []string{"429 7 Slow down", "429 7 Slow down", "200  Second", "200  <nil>"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if reply := w.send(t, "", "GET", w.APIURL+widgets, ""); reply.status != 200 {
		t.Errorf("the fault hits another path: %d", reply.status)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddIssue(forgetest.Issue{Title: "Wrong"})
	w.On("GET", widgets, forgetest.Reply{Status: 500}, 1)
	w.send(t, "", "GET", w.APIURL+widgets+"?page=1", "")
	w.send(t, "Bearer wrong", "GET", w.APIURL+widgets, "")
	w.send(t, "Bearer "+w.Token, "POST", w.APIURL+widgets+"/issues/1/comments", `{"body":"More."}`)
	want := []forgetest.Request{
		{Method: "GET", Path: widgets, Body: []byte{}},
		{Method: "GET", Path: widgets, Body: []byte{}},
		{Method: "POST", Path: widgets + "/issues/1/comments", Authorized: true, Body: []byte(`{"body":"More."}`)},
	}
	if diff := cmp.Diff(want, w.Requests()); diff != "" {
		t.Error(diff)
	}
}

func TestNumbersAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.repo.AddIssue(forgetest.Issue{Title: "Wrong"}); got != 1 {
		t.Errorf("the first issue is #%d", got)
	}
	if got := w.repo.AddIssue(forgetest.Issue{Number: 7, Title: "Wrong"}); got != 7 {
		t.Errorf("an issue with number 7 is #%d", got)
	}
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	if got := w.repo.AddIssue(forgetest.Issue{Title: "Wrong"}); got != 9 {
		t.Errorf("the issue after the pull request is #%d, want 9", got)
	}
	if pulls := w.repo.PullRequests(); len(pulls) != 1 || pulls[0].Number != 8 {
		t.Errorf("pull requests %+v, want one with number 8", pulls)
	}
}

func TestAuthors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := forgetest.User{Login: "renovate[bot]", ID: 29139614, Type: "Bot"}
	w.repo.AddIssue(forgetest.Issue{Title: "Ours", Comments: []forgetest.Comment{
		{Body: "ours"}, {Body: "a bot's", Author: bot}, {Body: "a member's", Author: forgetest.User{Login: "hubot"}, Association: "MEMBER"},
	}})
	got := w.ask(t, "GET", widgets+"/issues/1", "")
	if got.field(t, "user.login") != "octocat" || got.field(t, "user.id") != 583231.0 || got.field(t, "author_association") != "OWNER" {
		t.Errorf("the author left out is %s", got.body)
	}
	comments := w.ask(t, "GET", widgets+"/issues/1/comments", "")
	if diff := cmp.Diff([]any{"OWNER", "NONE", "MEMBER"}, comments.items(t, "author_association")); diff != "" {
		t.Error(diff)
	}
	w.ask(t, "POST", widgets+"/issues/1/comments", `{"body": "by the token"}`)
	kept := w.repo.Comments(1)
	if kept[1].Author != bot || kept[3].Author.Login != "octocat" || kept[3].Body != "by the token" {
		t.Errorf("comments are kept as %+v", kept)
	}
}

func TestTokenOfABot(t *testing.T) {
	t.Parallel()
	bot := forgetest.User{Login: "github-actions[bot]", ID: 41898282, Type: "Bot"}
	f := forgetest.New(t, forgetest.Options{Token: "one-of-the-test", User: bot})
	repo := f.AddRepository("octo", "widgets")
	repo.AddIssue(forgetest.Issue{Title: "Wrong"})
	w := &world{Forge: f, repo: repo, description: readDescription(t)}
	got := w.askAs(t, "Bearer one-of-the-test", "POST", widgets+"/issues/1/comments", `{"body": "More."}`)
	if got.status != 201 || got.field(t, "user.type") != "Bot" {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestIssueThatIsAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddIssue(forgetest.Issue{Title: "Change", PullRequest: true, State: "closed"})
	got := w.ask(t, "GET", widgets+"/issues/1", "")
	if got.field(t, "pull_request.url") != w.APIURL+widgets+"/pulls/1" || got.field(t, "closed_at") == nil {
		t.Errorf("got %s", got.body)
	}
	if pulls := w.repo.PullRequests(); pulls != nil {
		t.Errorf("there is a pull request: %+v", pulls)
	}
}

func TestSetPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddMilestone("v1")
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main", "body": "B"}`)
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) {
		p.Number, p.NodeID = 9, "other"
		p.State, p.Merged, p.Title, p.Milestone = "closed", true, "Merged", "v1"
		p.Labels, p.Assignees, p.Reviewers, p.Teams = []string{"done"}, []string{"hubot"}, []string{"monalisa"}, []string{"core"}
	})
	got := w.ask(t, "GET", widgets+"/pulls/1", "")
	if got.field(t, "merged") != true || got.field(t, "merged_at") == nil || got.field(t, "title") != "Merged" || got.field(t, "milestone.title") != "v1" {
		t.Errorf("got %s", got.body)
	}
	want := []forgetest.PullRequest{{
		Number: 1, NodeID: w.repo.PullRequests()[0].NodeID, State: "closed", Title: "Merged", Body: "B",
		Head: "feature/topic", Base: "main", Merged: true, Milestone: "v1",
		Labels: []string{"done"}, Assignees: []string{"hubot"}, Reviewers: []string{"monalisa"}, Teams: []string{"core"},
	}}
	if diff := cmp.Diff(want, w.repo.PullRequests()); diff != "" {
		t.Error(diff)
	}
	if again := w.ask(t, "PATCH", widgets+"/pulls/1", `{"state": "open"}`); again.status != 422 {
		t.Errorf("a merged pull request is reopened: %d", again.status)
	}
}

func TestCollaborators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Collaborators = []string{"hubot"}
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	w.ask(t, "POST", widgets+"/issues/1/assignees", `{"assignees": ["Hubot", "stranger"]}`)
	if got := w.ask(t, "POST", widgets+"/pulls/1/requested_reviewers", `{"reviewers": ["stranger"]}`); got.status != 422 {
		t.Errorf("a stranger is asked for a review: %d", got.status)
	}
	pull := w.repo.PullRequests()[0]
	if diff := cmp.Diff([]string{"Hubot"}, pull.Assignees); diff != "" || pull.Reviewers != nil {
		t.Errorf("reviewers %v, assignees %s", pull.Reviewers, diff)
	}
}

func TestDrafts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	node := w.repo.PullRequests()[0].NodeID
	inQuery := fmt.Sprintf(`{"query": "mutation { markPullRequestReadyForReview(input: {pullRequestId: \"%s\"}) { pullRequest { isDraft } } }"}`, node)
	inVariable := fmt.Sprintf(`{"query": "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } } }", "variables": {"id": %q}}`, node)
	inInput := fmt.Sprintf(`{"query": "mutation($input: MarkPullRequestReadyForReviewInput!) { markPullRequestReadyForReview(input: $input) { pullRequest { isDraft } } }", "variables": {"input": {"pullRequestId": %q}}}`, node)
	for _, c := range []struct {
		body, answer string
		draft        bool
	}{
		{inVariable, "data.convertPullRequestToDraft.pullRequest.isDraft", true},
		{inInput, "data.markPullRequestReadyForReview.pullRequest.isDraft", false},
		{inVariable, "data.convertPullRequestToDraft.pullRequest.isDraft", true},
		{inQuery, "data.markPullRequestReadyForReview.pullRequest.isDraft", false},
	} {
		got := w.send(t, "Bearer "+w.Token, "POST", w.URL+"/api/graphql", c.body)
		if got.status != 200 || got.field(t, c.answer) != c.draft || w.repo.PullRequests()[0].Draft != c.draft {
			t.Errorf("%s: got %d %s", c.body, got.status, got.body)
		}
	}
}

func TestGraphQLFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unknown := `{"query": "mutation { convertPullRequestToDraft(input: {pullRequestId: \"PR_none\"}) { clientMutationId } }"}`
	for _, c := range []struct {
		name, authorization, body string
		status                    int
		kind                      string
	}{
		{"unknown node", "Bearer " + w.Token, unknown, 200, "NOT_FOUND"},
		{"unknown mutation", "Bearer " + w.Token, `{"query": "mutation { addStar { clientMutationId } }"}`, 200, "undefinedField"},
		{"no JSON", "Bearer " + w.Token, `{`, 400, ""},
		{"wrong token", "Bearer wrong", unknown, 401, ""},
		{"no token", "", unknown, 401, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.send(t, c.authorization, "POST", w.URL+"/api/graphql", c.body)
			if got.status != c.status {
				t.Errorf("status %d, want %d: %s", got.status, c.status, got.body)
			}
			if problems, _ := got.field(t, "errors").([]any); c.kind != "" && (len(problems) != 1 || problems[0].(map[string]any)["type"] != c.kind) {
				t.Errorf("got %s, want the type %s", got.body, c.kind)
			}
		})
	}
}

// TestManyAtOnce is for the race detector, and for numbers that two get.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddIssue(forgetest.Issue{Title: "Wrong"})
	t.Run("clients", func(t *testing.T) {
		for i := range 8 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w.ask(t, "POST", widgets+"/issues/1/comments", fmt.Sprintf(`{"body": "%d"}`, i))
				w.ask(t, "GET", widgets+"/issues/1/comments", "")
				w.repo.AddIssue(forgetest.Issue{Title: "Another"})
				w.Requests()
			})
		}
	})
	if comments := w.repo.Comments(1); len(comments) != 8 {
		t.Errorf("%d comments, want 8", len(comments))
	}
	if got := w.repo.AddIssue(forgetest.Issue{Title: "Last"}); got != 10 {
		t.Errorf("the last issue is #%d, want 10", got)
	}
}
