package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestSurveyDescribesRepository(t *testing.T) {
	server, repository, handle := newForge(t)
	client := newClient(t, server.APIURL, server.Token)
	main, topic := revision(t, repository, "main"), revision(t, repository, "feature/topic")
	server.AddTwin(repository, "octo", "old").Archived = true
	server.AddTwin(repository, "octo", "theirs").Permissions = map[string]string{"octocat": "read"}
	server.AddTwin(repository, "octo", "hidden").Permissions = map[string]string{"octocat": "none"}
	server.AddRepository("octo", "empty")
	repository.AddIssue(forgetest.Issue{Title: "One"})
	repository.AddIssue(forgetest.Issue{Title: "Two", State: "closed"})
	pull := topicPull(t, handle)
	hostile := "octo/wid\"gets\") { name } } #\n\x1b[31m" + strings.Repeat("x", 100_000)
	findings := must.Get(client.Survey(t.Context(), []forge.Question{
		{Repository: "OCTO/Widgets", Issue: 1, Head: "feature/topic", Commit: main},
		{Repository: "octo/widgets", Branch: "feature/topic", Commit: main, Issue: 2},
		{Repository: "octo/widgets", Commit: topic, Issue: 9, Head: "main"},
		{Repository: "octo/widgets", Branch: "gone", Commit: strings.Repeat("0", 40)},
		{Repository: "octo/widgets", Pull: pull.Number},
		{Repository: "octo/widgets", Pull: 77},
		{Repository: "octo/nowhere"},
		{Repository: hostile, Branch: hostile},
		{Repository: "octo/old"},
		{Repository: "octo/theirs"},
		{Repository: "octo/hidden"},
		{Repository: "octo/empty"},
	}))(t)
	found := forge.Finding{Found: true, Repository: "octo/widgets", CanWrite: true, Branch: "main", Tip: main}
	with := func(change func(*forge.Finding)) forge.Finding {
		f := found
		change(&f)
		return f
	}
	want := []forge.Finding{
		with(func(f *forge.Finding) {
			f.HasCommit, f.IssueState, f.Open = true, "open", pull.URL
		}),
		with(func(f *forge.Finding) {
			f.Branch, f.Tip, f.HasCommit, f.IssueState = "feature/topic", topic, true, "closed"
		}),
		found, // whose default branch does not have the commit, which is of another
		with(func(f *forge.Finding) { f.Branch, f.Tip = "gone", "" }),
		{Found: true, Repository: "octo/widgets", PullState: "open", PullHead: topic},
		{Found: true, Repository: "octo/widgets"},
		{},
		{},
		with(func(f *forge.Finding) { f.Repository, f.Archived = "octo/old", true }),
		with(func(f *forge.Finding) { f.Repository, f.CanWrite = "octo/theirs", false }),
		with(func(f *forge.Finding) { f.Repository, f.CanWrite = "octo/hidden", false }),
		{Found: true, Repository: "octo/empty", CanWrite: true},
	}
	must.Same(t, want, findings[:len(want)])
}

func TestSurveyEndsOnRefusal(t *testing.T) {
	server, _, _ := newForge(t)
	client := newClient(t, server.APIURL, server.Token)
	server.On("POST", "/api/graphql", forgetest.Reply{Body: `{"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}`}, 1)
	must.Same(t, forge.RateLimited, forge.KindOf(must.Err(client.Survey(t.Context(), []forge.Question{{Repository: "octo/widgets"}}))))
	server.On("POST", "/api/graphql", forgetest.Reply{Body: `{"data": {"q0": null}, "errors": [{"type": "FORBIDDEN", "path": ["q0"], "message": "Resource protected by organization SAML enforcement."}]}`}, 1)
	if found, err := client.Survey(t.Context(), []forge.Question{{Repository: "octo/widgets"}}); err != nil || found[0].Found {
		t.Errorf("got %+v, %v", found, err)
	}
	aborted := forgetest.Reply{Body: `{"data": {"q0": null}, "errors": [{"path": ["q0"], "message": "Something went wrong while executing your query. Please include ` + "`A1`" + ` when reporting this issue."}]}`}
	server.On("POST", "/api/graphql", aborted, 5)
	must.Same(t, forge.Unavailable, forge.KindOf(must.Err(client.Survey(t.Context(), []forge.Question{{Repository: "octo/widgets"}}))), "at each attempt")
	if found, err := client.Survey(t.Context(), []forge.Question{{Repository: "octo/widgets"}}); err != nil || !found[0].Found {
		t.Errorf("aborted once: %+v, %v", found, err)
	}
	for _, body := range []string{`{}`, `{"data": {}}`, `{"message": "hello"}`} {
		server.On("POST", "/api/graphql", forgetest.Reply{Body: body}, 1)
		if found, err := client.Survey(t.Context(), []forge.Question{{Repository: "octo/widgets"}}); err == nil {
			t.Errorf("%s reads as %+v", body, found)
		}
	}
	server.On("POST", "/api/graphql", forgetest.Reply{Body: `{"data": null}`}, 1)
	must.Fail(t, "it has neither data nor errors", must.Err(client.Search(t.Context(), forge.Search{Issues: "greet"}, 10)))
}

func TestSurveyAssumesAppCanWrite(t *testing.T) {
	server := forgetest.New(t, forgetest.Options{Token: token, User: forgetest.User{Login: "octo-app[bot]", ID: 5, Type: "Bot"}})
	server.AddRepository("octo", "widgets")
	found, err := newClient(t, server.APIURL, server.Token).Survey(t.Context(), []forge.Question{{Repository: "octo/widgets"}})
	if err != nil || !found[0].CanWrite {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestSearchListsOrganisation(t *testing.T) {
	server, repository, handle := newForge(t)
	client := newClient(t, server.APIURL, server.Token)
	for i := range 249 {
		twin := server.AddTwin(repository, "octo", fmt.Sprintf("r%03d", i))
		if i%100 == 0 {
			twin.Topics = []string{"go"}
		}
		twin.Archived = i == 248
	}
	server.AddTwin(repository, "elsewhere", "widgets")
	pull := topicPull(t, handle)
	before := len(server.Requests())
	hits, err := client.Search(t.Context(), forge.Search{Organisation: "octo", Heads: "feature/"}, 1000)
	if err != nil || len(hits) != 249 {
		t.Fatalf("%d hits, %v", len(hits), err)
	}
	must.Same(t, 3, len(server.Requests())-before)
	last := hits[248]
	want := forge.Finding{Found: true, Repository: "octo/widgets", CanWrite: true, Branch: "main", Tip: revision(t, repository, "main")}
	must.Same(t, &want, last.Finding)
	must.Same(t, pull.URL, last.Open["feature/topic"])
	for i := range 11 { // one more than are asked for
		git(t, repository, "", "update-ref", fmt.Sprintf("refs/heads/many/%d", i), last.Finding.Tip)
	}
	if hits, err = client.Search(t.Context(), forge.Search{Organisation: "octo", Heads: "many/"}, 1000); err != nil || hits[248].Finding != nil {
		t.Errorf("with more branches than were told: %+v, %v", hits[248], err)
	}
	if hits, err = client.Search(t.Context(), forge.Search{Organisation: "octo", Topic: "go"}, 3); err != nil || len(hits) != 3 {
		t.Errorf("by topic: %d, %v", len(hits), err)
	}
	if hits, err = client.Search(t.Context(), forge.Search{Topic: "go"}, 3); err != nil || len(hits) != 3 {
		t.Errorf("by topic of any: %d, %v", len(hits), err)
	}
	for _, s := range []forge.Search{{Organisation: "octo"}, {Topic: "go"}} {
		if _, err := client.Search(t.Context(), s, 2); forge.KindOf(err) != forge.Invalid || !strings.Contains(err.Error(), "at most 2 can be taken") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	must.Same(t, forge.NotFound, forge.KindOf(must.Err(client.Search(t.Context(), forge.Search{Organisation: "nobody"}, 2))), "nobody")
}

func TestSearchRefusesBeyondGitHubLimit(t *testing.T) {
	server, repository, _ := newForge(t)
	client := newClient(t, server.APIURL, server.Token)
	for i := range 1001 {
		repository.AddIssue(forgetest.Issue{Title: fmt.Sprint("Issue ", i)})
	}
	must.Fail(t, "it finds 1001, and at most 1000", must.Err(client.Search(t.Context(), forge.Search{Organisation: "octo", Issues: "issue"}, 10_000)))
	repository.SetIssue(1, func(i *forgetest.Issue) { i.State = "closed" })
	if hits, err := client.Search(t.Context(), forge.Search{Organisation: "octo", Issues: "issue"}, 10_000); err != nil || len(hits) != 1000 || hits[999].Issue != 1001 || hits[999].Repository != "octo/widgets" {
		t.Errorf("%d, %v", len(hits), err)
	}
}

func TestRefusesPartOfFoundCode(t *testing.T) {
	a := newAPI(t, map[string]http.HandlerFunc{"GET /search/code": answer(200, `{"total_count": 1, "incomplete_results": true, "items": []}`)})
	must.Fail(t, "GitHub gave a part of the results", must.Err(a.client.Search(t.Context(), forge.Search{Organisation: "o", Code: "go.mod"}, 10)))
}
