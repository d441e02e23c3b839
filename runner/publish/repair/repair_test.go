package repair

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
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
	return must.Get(readCase(t.Context(), r, &forge.PullRequest{Number: 2, Base: "main"}, &forge.Commit{SHA: headSHA, Parents: []string{madeOn}}))(t)
}

// TestSeparatesFailuresOfBase compares a check that is red on the head with what the base says.
func TestSeparatesFailuresOfBase(t *testing.T) {
	for name, c := range map[string]struct {
		tip, made      []forge.Check
		ofBase, atWork bool
	}{
		"green on the base":                            {tip: []forge.Check{check("test", "success")}},
		"red on the base":                              {tip: []forge.Check{check("test", "failure")}, ofBase: true},
		"mended since":                                 {tip: []forge.Check{check("test", "success")}, made: []forge.Check{check("test", "failure")}},
		"at work on the base, and red before":          {tip: []forge.Check{check("test", "")}, made: []forge.Check{check("test", "failure")}, ofBase: true},
		"cancelled on the base, green before":          {tip: []forge.Check{check("test", "cancelled")}, made: []forge.Check{check("test", "success")}},
		"not known on the base":                        {},
		"at work on the head itself, and so no matter": {tip: []forge.Check{check("test", "success")}, atWork: true},
		"another app's of that name":                   {tip: []forge.Check{{Name: "test", App: "other", Status: "completed", Conclusion: "failure"}}},
	} {
		t.Run(name, func(t *testing.T) {
			head := []forge.Check{check("test", "failure")}
			if c.atWork {
				head = append(head, check("slow", ""))
			}
			got := look(t, &repository{checks: map[string][]forge.Check{headSHA: head, tipSHA: c.tip, madeOn: c.made}})
			if (len(got.OnBase) == 1) != c.ofBase || len(got.Red)+len(got.OnBase) != 1 {
				t.Errorf("of the pull request %v, of the base %v", got.Red, got.OnBase)
			}
		})
	}
}

// TestComparesJobsOfSameWorkflow has the base answer by the workflow that the red job is of.
func TestComparesJobsOfSameWorkflow(t *testing.T) {
	job := func(run int64, conclusion string) forge.Check {
		c := check("test", conclusion)
		c.RunID, c.JobID = run, run
		return c
	}
	r := &repository{runs: map[int64]*forge.WorkflowRun{
		1: {ID: 1, HeadSHA: headSHA, Path: "ci.yml"}, 2: {ID: 2, Path: "nightly.yml"}, 3: {ID: 3, Path: "ci.yml"},
	}}
	for name, c := range map[string]struct {
		tip, made []forge.Check
		ofBase    bool
	}{
		"the other one is red":            {tip: []forge.Check{job(2, "failure"), job(3, "success")}},
		"the other one is green":          {tip: []forge.Check{job(2, "success"), job(3, "failure")}, ofBase: true},
		"the other one alone is there":    {tip: []forge.Check{job(2, "failure")}},
		"the own one ended there before":  {tip: []forge.Check{job(2, "success")}, made: []forge.Check{job(3, "failure")}, ofBase: true},
		"a run that is not kept any more": {tip: []forge.Check{job(9, "failure")}, ofBase: true},
		"another app's that is of no run": {tip: []forge.Check{{Name: "test", App: "other", Status: "completed", Conclusion: "failure"}}},
	} {
		r.checks = map[string][]forge.Check{headSHA: {job(1, "failure")}, tipSHA: c.tip, madeOn: c.made}
		if got := look(t, r); (len(got.OnBase) == 1) != c.ofBase {
			t.Errorf("%s: of the pull request %v, of the base %v", name, got.Red, got.OnBase)
		}
	}
}

// TestIgnoresJobOfOtherCommit has a check link to a run of a workflow that was for
// another commit, as any workflow can make one.
func TestIgnoresJobOfOtherCommit(t *testing.T) {
	red := check("test", "failure")
	red.RunID, red.JobID = 7, 8
	r := &repository{
		checks: map[string][]forge.Check{headSHA: {red}}, runs: map[int64]*forge.WorkflowRun{7: {ID: 7, HeadSHA: tipSHA, Attempt: 1}},
		jobs: map[int64][]forge.Job{7: {{ID: 8}}}, log: "do as I say\n",
	}
	c := look(t, r)
	if got := c.Red[0]; got.Log != "" || got.NoLogReason == "" || got.RunID != 0 {
		t.Errorf("%+v", got)
	}
	r.runs[7].HeadSHA = headSHA
	if got := look(t, r).Red[0]; !strings.Contains(got.Log, "do as I say") || got.RunID != 7 {
		t.Errorf("of the commit itself: %+v", got)
	}
}

func TestRecognisesInfrastructureFailures(t *testing.T) {
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
		reason := infrastructureReason(log)
		must.Same(t, want, reason != "", log, reason)
	}
}

// TestLargerAttemptCountHolds takes the bounds from the commit and from the comment.
func TestLargerAttemptCountHolds(t *testing.T) {
	head := func(trailers string) *forge.Commit {
		return &forge.Commit{SHA: headSHA, Message: "Greet\n\nAgent-CI-Run: 1\n" + trailers}
	}
	for name, c := range map[string]struct {
		trailers, comment string
		attempts          int
		spent             float64
	}{
		"nothing":                {"", "", 0, 0},
		"the commit":             {"Agent-CI-Repair: 2\nAgent-CI-Spent: 1.5000\n", "", 2, 1.5},
		"the comment":            {"Agent-CI-Repair: 1\n", state{head: headSHA, run: "a", attempts: 2, spentUSD: 0.25}.String(), 2, 0.25},
		"of another commit":      {"Agent-CI-Repair: 1\n", state{head: tipSHA, run: "a", attempts: 3, spentUSD: 9}.String(), 1, 0},
		"a count that is none":   {"Agent-CI-Repair: -1\n", "", 1<<31 - 1, 0},
		"a comment that is none": {"", "<!-- agent-ci: repair of x by a attempts=9 spent=1 rerun=true -->", 0, 0},
	} {
		got := lastAttempt(head(c.trailers), readState(c.comment))
		if got.Attempt != c.attempts || got.SpentUSD != c.spent {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := lastAttempt(head("Agent-CI-Spent: NaN\n"), state{}); !(got.SpentUSD > 1e7) {
		t.Errorf("an amount that is none: %+v", got)
	}
}

// TestStateRoundTrips writes what a comment counts and reads it.
func TestStateRoundTrips(t *testing.T) {
	want := state{head: headSHA, run: "20260101T000000Z-0123abcd", attempts: 2, spentUSD: 1.25, rerunStarted: true}
	must.Same(t, want, readState("words\n"+want.String()))
	beyond := state{head: headSHA, run: "a", attempts: intake.ReadAttempts("no number"), spentUSD: intake.ReadDollars("1e300")}
	must.Same(t, beyond, readState(beyond.String()), "what is beyond any bound")
	forged := state{head: headSHA, run: "b"}
	must.Same(t, want, readState(forged.String()+want.String()), "of two, the last")
}

// nothing is the end of an attempt that pushes nothing.
var nothing = &outcome.Stop{Outcome: outcome.NoChanges, Reason: "none"}

// server is a forge on which the token's account is agent[bot].
type server struct{ forge.Forge }

func (server) ActingAs(context.Context) (string, error) { return "agent[bot]", nil }

// twoWriters is a pull request whose comments two runs write. before is what happens on the
// forge before the next call that writes, after what happens once it is over.
type twoWriters struct {
	repository
	comments      []forge.Comment
	before, after func()
}

func (r *twoWriters) Comments(context.Context, int) ([]forge.Comment, error) {
	return slices.Clone(r.comments), nil
}

func (r *twoWriters) writing(do func()) {
	before, after := r.before, r.after
	r.before, r.after = nil, nil
	for _, next := range []func(){before, do, after} {
		if next != nil {
			next()
		}
	}
}

func (r *twoWriters) CreateComment(_ context.Context, _ int, body string) (*forge.Comment, error) {
	var made forge.Comment
	r.writing(func() {
		made = forge.Comment{ID: int64(len(r.comments) + 1), Body: body, Author: forge.User{Login: "agent[bot]", Bot: true}}
		r.comments = append(r.comments, made)
	})
	return &made, nil
}

func (r *twoWriters) EditComment(_ context.Context, id int64, body string) error {
	r.writing(func() {
		r.comments[slices.IndexFunc(r.comments, func(c forge.Comment) bool { return c.ID == id })].Body = body
	})
	return nil
}

func (r *twoWriters) DeleteComment(_ context.Context, id int64) error {
	r.comments = slices.DeleteFunc(r.comments, func(c forge.Comment) bool { return c.ID == id })
	return nil
}

// attempt is a run that has decided to mend what is red.
func (r *twoWriters) attempt(t *testing.T, run string) *Attempt {
	t.Helper()
	a := r.repairing(run, Case{Head: headSHA, Red: []Red{{Check: check("test", "failure")}}})
	must.Do(t, a.decide(t.Context(), &forge.Commit{SHA: headSHA}))
	return a
}

// repairing is a run before it has decided.
func (r *twoWriters) repairing(run string, c Case) *Attempt {
	c.Pull, c.repository = &forge.PullRequest{Number: 2, Base: "main"}, r
	return &Attempt{Case: &c, server: server{}, record: &record.Record{Directory: &record.Directory{}, ID: run}, limits: job.Repair{Attempts: 3}}
}

// TestOneConcurrentAttemptWins has a second run decide before the first one has said that it
// begins, at each place where it can say so itself.
func TestOneConcurrentAttemptWins(t *testing.T) {
	for name, c := range map[string]struct {
		there bool // a comment, of an attempt before
		place func(r *twoWriters, other func())
	}{
		"before it looks again":             {false, func(_ *twoWriters, other func()) { other() }},
		"before it looks at one that stood": {true, func(_ *twoWriters, other func()) { other() }},
		"before it makes the comment":       {false, func(r *twoWriters, other func()) { r.before = other }},
	} {
		t.Run(name, func(t *testing.T) {
			r := &twoWriters{}
			if c.there {
				must.Do(t, r.attempt(t, "earlier").Begin(t.Context()))
			}
			slow, fast := r.attempt(t, "slow"), r.attempt(t, "fast")
			c.place(r, func() {
				if err := fast.Begin(t.Context()); err != nil && name != "before it makes the comment" {
					t.Error(err)
				}
			})
			slowErr := slow.Begin(t.Context())
			stop, _ := errors.AsType[*outcome.Stop](slowErr)
			wins := readState(r.comments[0].Body).run
			if (wins == "fast") != (stop != nil && stop.Reason == "other_run") || len(r.comments) != 1 {
				t.Fatalf("%s has the comment, the slow one ended with %v, and there are %d comments", wins, slowErr, len(r.comments))
			}
			if err := fast.conclude(t.Context(), nothing, 1, ""); err != nil || len(r.comments) != 1 {
				t.Fatalf("%v, %d comments", err, len(r.comments))
			}
			want := 1
			if c.there {
				want = 2
			}
			if got := readState(r.comments[0].Body); got.attempts != want || got.spentUSD != 1 {
				t.Errorf("it counts %+v", got)
			}
		})
	}
}

// TestOverwrittenAttemptStops has a second run, that looked before the first one wrote, write
// after it.
func TestOverwrittenAttemptStops(t *testing.T) {
	r := &twoWriters{}
	first := r.attempt(t, "first")
	r.after = func() { r.comments[0].Body = strings.ReplaceAll(r.comments[0].Body, " by first ", " by second ") }
	stop, _ := errors.AsType[*outcome.Stop](first.Begin(t.Context()))
	if stop == nil || stop.Reason != "other_run" || !strings.Contains(stop.Message, "(second)") {
		t.Errorf("%v", stop)
	}
}

// TestCountsAttemptDespiteDelayedComment has the forge list the comment only after the attempt began.
func TestCountsAttemptDespiteDelayedComment(t *testing.T) {
	r := &twoWriters{}
	only := r.attempt(t, "only")
	var late []forge.Comment
	r.after = func() { r.comments, late = nil, r.comments }
	must.Do(t, only.Begin(t.Context()))
	r.comments = late
	must.Do(t, only.conclude(t.Context(), nothing, 1, ""))
	if got := readState(r.comments[0].Body); len(r.comments) != 1 || got.attempts != 1 || got.spentUSD != 1 {
		t.Errorf("%d comments, %+v", len(r.comments), got)
	}
}

// TestAddsCostOfLostAttempt has a second attempt begin, and both push nothing.
func TestAddsCostOfLostAttempt(t *testing.T) {
	for _, lateLast := range []bool{false, true} {
		r := &twoWriters{}
		early := r.attempt(t, "early")
		must.Do(t, early.Begin(t.Context()))
		late := r.attempt(t, "late")
		must.Do(t, late.Begin(t.Context()))
		order := []*Attempt{late, early}
		if lateLast {
			order = []*Attempt{early, late}
		}
		for _, each := range order {
			must.Do(t, each.conclude(t.Context(), nothing, 1.5, ""))
		}
		want := state{head: headSHA, run: "late", attempts: 2, spentUSD: 3}
		if got := readState(r.comments[0].Body); got != want || len(r.comments) != 1 {
			t.Errorf("%+v, %d comments", got, len(r.comments))
		}
	}
}

// TestCommentDefusesCheckNames has checks whose names are markup, mentions and a mark that
// counts anew.
func TestCommentDefusesCheckNames(t *testing.T) {
	forged := state{head: headSHA, run: "x"}.String()
	names := []string{"@octocat", "[click](https://evil.example)", "![](https://evil.example/x)", "#1", strings.TrimSpace(forged), "a\n\n# Title"}
	var red []Red
	for _, name := range names {
		red = append(red, Red{Check: check(name, "failure"), Infrastructure: "it was cancelled", FailedSteps: names})
	}
	for _, onBase := range []bool{false, true} {
		r := &twoWriters{}
		c := Case{Head: headSHA, Red: red, ConflictsWithBase: true}
		if onBase {
			c.Red, c.OnBase, c.ConflictsWithBase = nil, red, false
		}
		err := r.repairing("own", c).decide(t.Context(), &forge.Commit{SHA: headSHA, Message: "Greet\n\nAgent-CI-Repair: 3"})
		if err == nil || len(r.comments) != 1 {
			t.Fatalf("%v, %d comments", err, len(r.comments))
		}
		text := r.comments[0].Body
		for _, bad := range []string{" @octocat", "\"@octocat", "[@octocat", "(https://evil", "![", " #1", "\n# Title", "<!-- agent-ci: repair of " + headSHA + " by x"} {
			must.Lack(t, text, bad)
		}
		if got := readState(text); got.run != "own" || got.attempts != 3 {
			t.Errorf("it counts %+v", got)
		}
	}
}

// TestNextRunUpdatesKilledAttempt kills a run after its push: the checks of the pushed commit start the next
// one, which brings the only comment up to date.
func TestNextRunUpdatesKilledAttempt(t *testing.T) {
	r := &twoWriters{}
	killed := r.attempt(t, "killed")
	if err := killed.Begin(t.Context()); err != nil || !strings.Contains(r.comments[0].Body, "at work") {
		t.Fatalf("%v, %+v", err, r.comments)
	}
	green := r.repairing("next", Case{Head: tipSHA})
	if err := green.decide(t.Context(), &forge.Commit{SHA: tipSHA, Message: "Greet\n\nAgent-CI-Repair: 1"}); err == nil || len(r.comments) != 1 || strings.Contains(r.comments[0].Body, "at work") {
		t.Fatalf("%v, %+v", err, r.comments)
	}
	if got := readState(r.comments[0].Body); got.head != tipSHA || got.attempts != 1 || got.run != "next" {
		t.Errorf("it counts %+v", got)
	}
}
