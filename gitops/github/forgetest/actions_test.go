package forgetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func (w *world) tip(t *testing.T, branch string) string {
	t.Helper()
	return w.git(t, "ls-remote", "bare", "refs/heads/"+branch)[:40]
}

func TestChecksOfACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sha := w.tip(t, "feature/topic")
	run := w.repo.AddWorkflow(forgetest.WorkflowRun{Name: "CI", Branch: "feature/topic", SHA: sha, Jobs: []forgetest.Job{
		{Name: "build"},
		{Name: "test", Conclusion: "failure", Runner: "Hosted 1", Log: "red\n", Steps: []forgetest.Step{
			{Name: "Set up job", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Completed: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)},
			{Name: "go test", Conclusion: "failure"},
		}},
	}, Again: []forgetest.Job{{Name: "test", Log: "green\n"}}})
	w.repo.AddCheck(forgetest.Check{SHA: sha, Name: "lint", App: "linter", Conclusion: "failure", Title: "1 problem", Summary: "main.go:1", URL: "https://example.invalid/1"})
	w.repo.AddCheck(forgetest.Check{SHA: sha, Name: "deploy", Conclusion: "pending", Title: "waits"})
	w.repo.AddCheck(forgetest.Check{SHA: sha, Name: "deploy", Conclusion: "error", Title: "broken"})
	at := widgets + "/commits/" + sha
	names := func(path, list, field string) []any {
		t.Helper()
		var all []any
		for _, each := range w.ask(t, "GET", path, "").field(t, list).([]any) {
			all = append(all, each.(map[string]any)[field])
		}
		return all
	}
	jobs := fmt.Sprintf("%s/actions/runs/%d/jobs", widgets, run)
	for _, c := range []struct {
		path, list, field string
		want              []any
	}{
		{at + "/check-runs", "check_runs", "conclusion", []any{"success", "failure", "failure"}},
		{at + "/check-runs?per_page=1&page=3", "check_runs", "name", []any{"lint"}},
		{at + "/status", "statuses", "state", []any{"error"}},
		{jobs, "jobs", "name", []any{"build", "test"}},
	} {
		if diff := cmp.Diff(c.want, names(c.path, c.list, c.field)); diff != "" {
			t.Errorf("%s: %s", c.path, diff)
		}
	}
	if got := w.ask(t, "GET", fmt.Sprintf("%s/actions/runs/%d", widgets, run), ""); got.field(t, "conclusion") != "failure" || got.field(t, "run_attempt") != 1.0 {
		t.Errorf("%s", got.body)
	}
	first := names(jobs, "jobs", "id")
	if got := w.ask(t, "POST", fmt.Sprintf("%s/actions/runs/%d/rerun-failed-jobs", widgets, run), ""); got.status != 201 {
		t.Fatalf("a re-run: %d %s", got.status, got.body)
	}
	if got := w.ask(t, "GET", fmt.Sprintf("%s/actions/runs/%d", widgets, run), ""); got.field(t, "conclusion") != "success" || got.field(t, "run_attempt") != 2.0 {
		t.Errorf("%s", got.body)
	}
	if second := names(jobs, "jobs", "id"); second[0] != first[0] || second[1] == first[1] || w.repo.Attempts(run) != 2 {
		t.Errorf("jobs %v, then %v", first, second)
	}
	if got := names(jobs+"?filter=all", "jobs", "run_attempt"); len(got) != 3 {
		t.Errorf("jobs of all attempts: %v", got)
	}
	if got := w.ask(t, "POST", fmt.Sprintf("%s/actions/runs/%d/rerun-failed-jobs", widgets, run), ""); got.status != 403 {
		t.Errorf("a re-run of what is green: %d", got.status)
	}
	for id, want := range map[any]string{first[1]: "red\n", names(jobs, "jobs", "id")[1]: "green\n"} {
		place := w.redirect(t, fmt.Sprintf("%s/actions/jobs/%.0f/logs", widgets, id))
		if got := w.send(t, "", "GET", place, ""); string(got.body) != want {
			t.Errorf("the log is %q", got.body)
		}
		if got := w.send(t, "Bearer "+w.Token, "GET", strings.TrimSuffix(place, "forgetest"), ""); got.status != 403 {
			t.Errorf("an address that was not given: %d", got.status)
		}
	}
}

func TestLogsThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.AddWorkflow(forgetest.WorkflowRun{ID: 7, SHA: w.tip(t, "main"), Jobs: []forgetest.Job{
		{Name: "old", LogExpired: true}, {Name: "runs", Status: "in_progress"}, {Name: "away", LogAt: "https://store.example.invalid/x"},
	}})
	jobs := w.ask(t, "GET", widgets+"/actions/runs/7/jobs", "").field(t, "jobs").([]any)
	path := func(i int) string {
		return fmt.Sprintf("%s/actions/jobs/%.0f/logs", widgets, jobs[i].(map[string]any)["id"])
	}
	for i, status := range []int{410, 404} {
		if got := w.ask(t, "GET", path(i), ""); got.status != status {
			t.Errorf("%s: %d, want %d", path(i), got.status, status)
		}
	}
	if got := w.redirect(t, path(2)); got != "https://store.example.invalid/x" {
		t.Errorf("it leads to %q", got)
	}
	if got := w.askAs(t, "", "GET", path(2), ""); got.status != 403 {
		t.Errorf("nobody is let in: %d", got.status)
	}
	if got := w.ask(t, "POST", widgets+"/actions/runs/7/rerun-failed-jobs", ""); got.status != 403 {
		t.Errorf("a re-run of what runs: %d", got.status)
	}
}

// What stands in a commit is not who pushed it.
func TestWhoseACommitIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git(t, "commit", "--quiet", "--allow-empty", "--author=Bot <4242+helper[bot]@users.noreply.github.com>", "--message=forged")
	w.git(t, "push", "--quiet", w.URL[:7]+"x:"+w.Token+"@"+w.URL[7:]+"/octo/widgets.git", "HEAD:refs/heads/feature/topic")
	sha := w.tip(t, "feature/topic")
	got := w.ask(t, "GET", widgets+"/commits/"+sha, "")
	if got.field(t, "author.login") != "helper[bot]" || got.field(t, "author.type") != "Bot" || got.field(t, "committer") != nil {
		t.Errorf("%s", got.body)
	}
	pushes := func(query string) []any {
		t.Helper()
		var all []any
		for i, after := range w.ask(t, "GET", widgets+"/activity?"+query, "").items(t, "after") {
			by := w.ask(t, "GET", widgets+"/activity?"+query, "").items(t, "actor")[i].(map[string]any)["login"]
			all = append(all, fmt.Sprint(by, " ", after == sha))
		}
		return all
	}
	w.repo.AddPush("feature/topic", forgetest.User{Login: "grace"})
	w.repo.AddPush("main", forgetest.User{Login: "ada"})
	for query, want := range map[string][]any{
		"ref=refs/heads/feature/topic": {"grace true", "octocat true"}, "ref=main": {"ada false"}, "ref=gone": nil,
	} {
		if diff := cmp.Diff(want, pushes(query)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestPullRequestsOfACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	for branch, want := range map[string]int{"feature/topic": 1, "main": 0} {
		if got := w.ask(t, "GET", widgets+"/commits/"+w.tip(t, branch)+"/pulls", "").items(t, "number"); len(got) != want {
			t.Errorf("of %s: %v", branch, got)
		}
	}
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.HeadRepository = "stranger/widgets" })
	if got := w.ask(t, "GET", widgets+"/pulls/1", ""); got.field(t, "head.repo.full_name") != "stranger/widgets" || got.field(t, "head.label") != "stranger:feature/topic" {
		t.Errorf("%s", got.body)
	}
}

func TestMergeableState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(t, "POST", widgets+"/pulls", `{"title": "T", "head": "feature/topic", "base": "main"}`)
	state := func() string {
		got := w.ask(t, "GET", widgets+"/pulls/1", "")
		return fmt.Sprint(got.field(t, "mergeable_state"), " ", got.field(t, "mergeable"))
	}
	if got := state(); got != "clean true" {
		t.Error(got)
	}
	w.git(t, "checkout", "--quiet", "-b", "other", "feature/topic~1")
	file := filepath.Join(w.checkout, "feature-topic.txt") // which the branch adds in its way
	if err := os.WriteFile(file, []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.git(t, "add", "--all")
	w.git(t, "commit", "--quiet", "--message=Another way")
	w.git(t, "push", "--quiet", "bare", "HEAD:refs/heads/main")
	if got := state(); got != "dirty false" {
		t.Error(got)
	}
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Mergeable = "unknown" })
	if got := state(); got != "unknown <nil>" {
		t.Error(got)
	}
}
