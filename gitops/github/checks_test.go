package github_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestForgeChecks(t *testing.T) {
	server, repository, handle := newForge(t)
	sha := revision(t, repository, "feature/topic")
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := repository.AddWorkflow(forgetest.WorkflowRun{
		Name: "CI", Event: "pull_request", Branch: "feature/topic", SHA: sha, HeadRepository: "stranger/widgets",
		Jobs: []forgetest.Job{
			{Name: "build"},
			{Name: "test", Conclusion: "failure", Steps: []forgetest.Step{{Name: "go test", Conclusion: "failure", Started: began, Completed: began.Add(time.Second)}}},
		},
		Again: []forgetest.Job{{Name: "test"}},
	})
	page := fmt.Sprintf("%s/octo/widgets/actions/runs/%d/job/1", server.URL, run)
	for _, c := range []forgetest.Check{
		{SHA: sha, Name: "lint", App: "linter", Conclusion: "failure", Title: "One problem", Summary: strings.Repeat("ü", forge.MaxSummary), URL: page},
		{SHA: sha, Name: "elsewhere", App: "github-actions", Status: "queued", URL: strings.Replace(page, "octo", "stranger", 1)},
		{SHA: sha, Name: "deploy", Conclusion: "error", Title: "It broke", URL: "https://example.invalid/"},
		{SHA: sha, Name: "review", Conclusion: "pending"},
		{SHA: revision(t, repository, "main"), Name: "other", Conclusion: "error"},
	} {
		repository.AddCheck(c)
	}
	got, err := handle.Checks(t.Context(), sha)
	if err != nil || len(got) != 6 {
		t.Fatalf("%d checks, %v", len(got), err)
	}
	jobs, err := handle.WorkflowJobs(t.Context(), run)
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if summary := got[2].Summary; len(summary) > forge.MaxSummary || !strings.HasPrefix(summary, "One problem\n\nüü") {
		t.Errorf("a summary of %d bytes: %.40q", len(summary), summary)
	}
	got[2].Summary = ""
	want := []forge.Check{
		{Name: "build", Status: "completed", Conclusion: "success", App: "github-actions", RunID: run, JobID: jobs[0].ID},
		{Name: "test", Status: "completed", Conclusion: "failure", App: "github-actions", RunID: run, JobID: jobs[1].ID},
		{Name: "lint", Status: "completed", Conclusion: "failure", App: "linter"},
		{Name: "elsewhere", Status: "queued", App: "github-actions"},
		{Name: "deploy", Status: "completed", Conclusion: "failure", Summary: "It broke"},
		{Name: "review", Status: "in_progress"},
	}
	must.Same(t, "https://example.invalid/", got[4].URL)
	for i := range got {
		got[i].URL = ""
	}
	must.Same(t, want, got)
	steps := []forge.Step{{Name: "go test", Conclusion: "failure", Started: began, Completed: began.Add(time.Second)}}
	must.Same(t, steps, jobs[1].Steps)
	workflow := &forge.WorkflowRun{ID: run, Path: ".github/workflows/ci.yml", Attempt: 1, HeadSHA: sha}
	must.Same(t, workflow, must.Get(handle.WorkflowRun(t.Context(), run))(t))
	must.Do(t, handle.RerunFailedJobs(t.Context(), run))
	must.Same(t, 2, must.Get(handle.WorkflowRun(t.Context(), run))(t).Attempt)
	must.Same(t, "success", must.Get(handle.Checks(t.Context(), sha))(t)[1].Conclusion, "of a job that ran again")
}

func TestForgeReadsAllPagesOfChecks(t *testing.T) {
	server, repository, handle := newForge(t)
	sha := revision(t, repository, "main")
	for i := range 150 {
		repository.AddCheck(forgetest.Check{SHA: sha, Name: fmt.Sprint(i), App: "linter"})
		repository.AddCheck(forgetest.Check{SHA: sha, Name: fmt.Sprint(i), Conclusion: "success"})
	}
	if got, err := handle.Checks(t.Context(), sha); len(got) != 300 || err != nil || len(server.Requests()) != 4 {
		t.Errorf("%d checks in %d requests, %v", len(got), len(server.Requests()), err)
	}
}

func TestForgeRefusesReruns(t *testing.T) {
	server, repository, handle := newForge(t)
	running := repository.AddWorkflow(forgetest.WorkflowRun{Jobs: []forgetest.Job{{Name: "test", Status: "in_progress"}}})
	red := repository.AddWorkflow(forgetest.WorkflowRun{Jobs: []forgetest.Job{{Name: "test", Conclusion: "failure"}}})
	server.On("POST", fmt.Sprintf("/repos/octo/widgets/actions/runs/%d/rerun-failed-jobs", red), forgetest.Reply{
		Status: http.StatusForbidden, Body: `{"message": "Resource not accessible by integration"}`,
	}, 1)
	for _, c := range []struct {
		run   int64
		kind  forge.Kind
		words string
	}{
		{running, forge.Invalid, "already running"}, {red, forge.Forbidden, "actions: write"}, {1 << 40, forge.NotFound, "actions: write"},
	} {
		if err := handle.RerunFailedJobs(t.Context(), c.run); forge.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%d: %v", c.run, err)
		}
	}
}

func openLog(t *testing.T, handle forge.Repository, job forge.Job) (string, error) {
	t.Helper()
	log, err := handle.JobLog(t.Context(), job.ID)
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(io.LimitReader(log, 1<<20))
	return string(text), err
}

// A log is at another host, which learns nothing of who asks; its address opens it for
// everybody, and stands in no error.
func TestForgeLogs(t *testing.T) {
	store, asked := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "away\n")
	})
	server, repository, handle := newForge(t)
	run := repository.AddWorkflow(forgetest.WorkflowRun{Jobs: []forgetest.Job{
		{Name: "own", Log: "own\n"},
		{Name: "away", LogAt: store + "/away?sig=secret"},
		{Name: "expired", LogExpired: true},
		{Name: "runs", Status: "in_progress"},
		{Name: "refused", LogAt: store + "/refused?sig=secret"},
		{Name: "in the clear", LogAt: "http://store.example.invalid/?sig=secret"},
	}})
	jobs := must.Get(handle.WorkflowJobs(t.Context(), run))(t)
	for i, want := range []struct {
		text string
		kind forge.Kind
		why  string
	}{
		{"own\n", "", ""},
		{"away\n", "", ""},
		{"", forge.NotFound, "not kept any more"},
		{"", forge.NotFound, "actions: read"},
		{"", forge.Unavailable, "answered 403"},
		{"", forge.Other, "no https address"},
	} {
		got, err := openLog(t, handle, jobs[i])
		if got != want.text || forge.KindOf(err) != want.kind || err != nil && !strings.Contains(err.Error(), want.why) {
			t.Errorf("log %d: %q, %v", i, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), server.Token)) {
			t.Errorf("it tells a secret: %v", err)
		}
	}
	must.Same(t, []string{"/away", "/refused"}, *asked, "asked")
}

// A log is as long as a job makes it: the limit of other replies is not its.
func TestForgeReadsLongLogs(t *testing.T) {
	const length = 64 << 20
	store, _ := newStore(t, func(w http.ResponseWriter, _ *http.Request) {
		for range length >> 20 {
			_, _ = w.Write(make([]byte, 1<<20))
		}
	})
	_, repository, handle := newForge(t)
	run := repository.AddWorkflow(forgetest.WorkflowRun{Jobs: []forgetest.Job{{Name: "long", LogAt: store}}})
	jobs := must.Get(handle.WorkflowJobs(t.Context(), run))(t)
	log := must.Get(handle.JobLog(t.Context(), jobs[0].ID))(t)
	defer log.Close()
	must.Same(t, length, must.Get(io.Copy(io.Discard, log))(t))
}

func TestForgeReportsPusher(t *testing.T) {
	_, repository, handle := newForge(t)
	sha := revision(t, repository, "main")
	must.Same(t, forge.User{}, must.Get(handle.PushedBy(t.Context(), "main", sha))(t), "before a push")
	repository.AddPush("main", forgetest.User{Login: "helper[bot]", ID: 9, Type: "Bot"})
	repository.AddPush("feature/topic", forgetest.User{Login: "grace", ID: 10})
	must.Same(t, forge.User{Login: "helper[bot]", ID: 9, Bot: true}, must.Get(handle.PushedBy(t.Context(), "main", sha))(t))
	must.Same(t, forge.User{}, must.Get(handle.PushedBy(t.Context(), "feature/topic", sha))(t), "of a commit that is elsewhere")
	for _, call := range []func() error{
		func() error { _, err := handle.PushedBy(t.Context(), "../x", sha); return err },
		func() error { _, err := handle.Checks(t.Context(), "main"); return err },
		func() error { _, err := handle.PullRequestsWith(t.Context(), "x"); return err },
	} {
		must.Same(t, forge.Invalid, forge.KindOf(call()), "it is asked for all the same")
	}
}
