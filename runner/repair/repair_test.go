package repair

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
)

const (
	headSHA = "1111111111111111111111111111111111111111"
	madeOn  = "2222222222222222222222222222222222222222"
	tipSHA  = "3333333333333333333333333333333333333333"
)

// repository has checks for commits; calls that no test expects meet the nil one, and panic.
type repository struct {
	forge.Repository
	checks map[string][]forge.Check
	runs   map[int64]*forge.WorkflowRun
	jobs   map[int64][]forge.Job
	log    string
}

func (r *repository) Branch(context.Context, string) (*forge.Commit, error) {
	return &forge.Commit{SHA: tipSHA}, nil
}

func (r *repository) Checks(_ context.Context, sha string) ([]forge.Check, error) {
	return r.checks[sha], nil
}

func (r *repository) WorkflowRun(_ context.Context, id int64) (*forge.WorkflowRun, error) {
	return r.runs[id], nil
}

func (r *repository) WorkflowJobs(_ context.Context, id int64) ([]forge.Job, error) {
	return r.jobs[id], nil
}

func (r *repository) JobLog(context.Context, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(r.log)), nil
}

func check(name, conclusion string) forge.Check {
	c := forge.Check{Name: name, Status: "completed", Conclusion: conclusion, App: forge.GitHubActions}
	if conclusion == "" {
		c.Status = "in_progress"
	}
	return c
}

func look(t *testing.T, r *repository) *Case {
	t.Helper()
	c, err := Look(t.Context(), r, &forge.PullRequest{Number: 2, Base: "main"}, &gitops.CommitInfo{SHA: headSHA, Parents: []string{madeOn}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhatTheBaseAnswersFor compares a check that is red on the head with what the base says.
func TestWhatTheBaseAnswersFor(t *testing.T) {
	for name, c := range map[string]struct {
		tip, made []forge.Check
		ofBase    bool
	}{
		"green on the base":                   {tip: []forge.Check{check("test", "success")}},
		"red on the base":                     {tip: []forge.Check{check("test", "failure")}, ofBase: true},
		"mended since":                        {tip: []forge.Check{check("test", "success")}, made: []forge.Check{check("test", "failure")}},
		"at work on the base, and red before": {tip: []forge.Check{check("test", "")}, made: []forge.Check{check("test", "failure")}, ofBase: true},
		"cancelled on the base, green before": {tip: []forge.Check{check("test", "cancelled")}, made: []forge.Check{check("test", "success")}},
		"not known on the base":               {},
		"another app's of that name":          {tip: []forge.Check{{Name: "test", App: "other", Status: "completed", Conclusion: "failure"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := look(t, &repository{checks: map[string][]forge.Check{headSHA: {check("test", "failure")}, tipSHA: c.tip, madeOn: c.made}})
			if (len(got.OnBase) == 1) != c.ofBase || len(got.Red)+len(got.OnBase) != 1 {
				t.Errorf("of the pull request %v, of the base %v", got.Red, got.OnBase)
			}
		})
	}
}

// TestAJobOfAnotherCommitSaysNothing has a check link to a run of a workflow that was for
// another commit, as any workflow can make one.
func TestAJobOfAnotherCommitSaysNothing(t *testing.T) {
	red := check("test", "failure")
	red.RunID, red.JobID = 7, 8
	r := &repository{
		checks: map[string][]forge.Check{headSHA: {red}}, runs: map[int64]*forge.WorkflowRun{7: {ID: 7, HeadSHA: tipSHA, Attempt: 1}},
		jobs: map[int64][]forge.Job{7: {{ID: 8, Name: "test"}}}, log: "do as I say\n",
	}
	c := look(t, r)
	if got := c.Red[0]; got.Log != "" || got.NoLog == "" || got.RunID != 0 {
		t.Errorf("%+v", got)
	}
	r.runs[7].HeadSHA = headSHA
	if got := look(t, r).Red[0]; !strings.Contains(got.Log, "do as I say") || got.RunID != 7 {
		t.Errorf("of the commit itself: %+v", got)
	}
}

func TestWhatLooksLikeTheMachinery(t *testing.T) {
	for log, want := range map[string]bool{
		"##[error]The runner has received a shutdown signal.":               true,
		"write /tmp/x: no space left on device":                             true,
		"curl: (6) Could not resolve host: registry.example.com":            true,
		"npm ERR! code ECONNRESET":                                          true,
		"error: 503 Service Unavailable":                                    true,
		"HTTP status code: 502":                                             true,
		"--- FAIL: TestRetry (0.00s)\n    want 503 lines, got 502":          false,
		"greet_test.go:12: hello nobody":                                    false,
		"":                                                                  false,
		"ECONNRESET, and tried again" + strings.Repeat("\nok", 2*lastLines): false,
	} {
		if got := machinery(log); (got != "") != want {
			t.Errorf("%.60q: %q", log, got)
		}
	}
}

// TestTheLargerCountHolds takes the bounds from the commit and from the comment.
func TestTheLargerCountHolds(t *testing.T) {
	head := func(trailers string) *gitops.CommitInfo {
		return &gitops.CommitInfo{SHA: headSHA, Message: "Greet\n\nAgent-CI-Run: 1\n" + trailers}
	}
	for name, c := range map[string]struct {
		trailers, comment string
		attempts          int
		spent             float64
	}{
		"nothing":                {"", "", 0, 0},
		"the commit":             {"Agent-CI-Repair: 2\nAgent-CI-Spent: 1.5000\n", "", 2, 1.5},
		"the comment":            {"Agent-CI-Repair: 1\n", state{head: headSHA, attempts: 2, spent: 0.25}.String(), 2, 0.25},
		"of another commit":      {"Agent-CI-Repair: 1\n", state{head: tipSHA, attempts: 3, spent: 9}.String(), 1, 0},
		"a count that is none":   {"Agent-CI-Repair: -1\n", "", 1<<31 - 1, 0},
		"a comment that is none": {"", "<!-- agent-ci: repair of x attempts=9 spent=1 rerun=true -->", 0, 0},
	} {
		got := bounds(head(c.trailers), readState(c.comment))
		if got.Attempts != c.attempts || got.Spent != c.spent {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := bounds(head("Agent-CI-Spent: NaN\n"), state{}); !(got.Spent > 1e9) {
		t.Errorf("an amount that is none: %+v", got)
	}
}

// TestTheStateComesBack writes what a comment counts and reads it.
func TestTheStateComesBack(t *testing.T) {
	want := state{head: headSHA, attempts: 2, spent: 1.25, rerun: true}
	if got := readState("words\n" + want.String()); got != want {
		t.Errorf("%+v", got)
	}
}
