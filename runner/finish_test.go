package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// begun is the record of a run of a job that has its checkout.
func begun(t *testing.T, job string) *record.Record {
	t.Helper()
	rec := recordtest.New(t, "run-1")
	must.Do(t, errors.Join(rec.Begin(transcript.RunStarted{RunID: "run-1", Job: []byte(job)}), rec.Append(transcript.Workspace{BaseSHA: "c0ffee"})))
	return rec
}

// changed are files of a change set.
func changed(paths ...string) *gitops.ChangeSet {
	change := &gitops.ChangeSet{Insertions: 1}
	for _, path := range paths {
		change.Files = append(change.Files, changeset.File{Path: path, Status: "modified"})
	}
	return change
}

// What the minute after limits.time was too short for is not begun again at the end.
func TestTakesChangeOnceAfterTimeLimit(t *testing.T) {
	r := &runner{end: &ending{tookTooLong: context.DeadlineExceeded}}
	must.Is(t, context.DeadlineExceeded, must.Err(r.TakeUnsaved(t.Context())))
}

// On a full disk, only the removal of working files makes room. Here a link to their folder is in the way until then.
func TestWritesReportAfterWorkingFilesMadeRoom(t *testing.T) {
	rec := begun(t, "{}")
	for i := range 3000 { // their removal takes longer than the report
		must.Do(t, rec.Write(path.Join(record.StateFolder, fmt.Sprint(i)), nil))
	}
	must.Do(t, os.Symlink(record.StateFolder, rec.Join(record.ReportFile+".new")))
	s := &start.Start{Record: rec, Found: start.Found{Assignment: &start.Assignment{Request: &start.Request{}}}}
	r := &runner{Start: s, end: &ending{Found: &s.Found}}
	result := r.writeEnd(transcript.RunFinished{Outcome: string(outcome.NoChanges)})
	must.Same(t, record.ReportFile, result.ReportFile, "the report", result.Errors)
	must.Same(t, false, rec.Has(record.StateFolder+"/0"), "working files are left")
}

// The end is read off what was reached, in this order: an error, a budget, no change,
// red checks, what others published.
func TestDerivesOutcomeFromReachedState(t *testing.T) {
	red := transcript.Verify{Rows: []transcript.VerifyRow{{Name: "test", Before: "green", After: "red", Log: "outputs/test.log"}}}
	green := transcript.Verify{Passed: true}
	budget := outcome.Stopf(outcome.BudgetExceeded, "turns", "10 turns are used up.")
	pushed := publish.Publication{Change: changed("a"), Verification: green, Commit: "0123456789abcdef", Branch: "agent-ci/x", Remote: "origin"}
	held, red2, vanished, inBase := pushed, pushed, publish.Publication{Change: changed(), Verification: green}, publish.Publication{Change: changed(), Verification: green, InBase: true}
	held.Unchanged = true
	red2.Verification = red
	vanished.OpenPullOfTask = &forge.PullRequest{Number: 7, URL: "https://x/pull/7"}
	inBase.Base.Branch = "main"
	for name, c := range map[string]struct {
		end  *ending
		err  error
		want string
		says string
	}{
		"an error":                        {&ending{published: &pushed}, errors.New("boom."), "internal_error/unexpected", "Boom; see"},
		"a stop":                          {&ending{published: &pushed}, budget, "budget_exceeded/turns", "10 turns are used up."},
		"a budget, and nothing published": {&ending{work: work{stopped: budget, change: changed()}}, nil, "budget_exceeded/turns", "10 turns are used up."},
		"a budget, and a draft":           {&ending{published: &pushed, work: work{stopped: budget}}, nil, "budget_exceeded/turns", "10 turns are used up. The change is commit 0123456789ab on"},
		"no change":                       {&ending{work: work{change: changed()}}, nil, "no_changes/nothing_to_do", "its last message says why"},
		"no change was taken":             {&ending{}, nil, "no_changes/nothing_to_do", ""},
		"an answer":                       {&ending{Found: expecting("answer")}, nil, "no_changes/answered", ""},
		"protected files alone":           {&ending{work: work{droppedPaths: []string{".github/x.yml"}}}, nil, "no_changes/only_protected", "(.github/x.yml)"},
		"nothing left, and one open":      {&ending{published: &vanished}, nil, "no_changes/nothing_to_do", "Pull request #7 of an earlier run stays open"},
		"in the base by now":              {&ending{published: &inBase}, nil, "no_changes/already_in_base", "main already has this change"},
		"red, and left":                   {&ending{work: work{change: changed("a"), verification: red}}, nil, "verify_failed/red", "test is red (was green, log "},
		"red, and published":              {&ending{published: &red2}, nil, "verify_failed/red", "pushed to origin. Do not merge it."},
		"a budget, and a red draft":       {&ending{published: &red2, work: work{stopped: budget}}, nil, "budget_exceeded/turns", "10 turns are used up. The change does not pass: test is red (was green, log "},
		"what an earlier run pushed":      {&ending{published: &held}, nil, "no_changes/already_published", "nothing was pushed"},
		"pushed":                          {&ending{published: &pushed}, nil, "changed/pushed", "pushed to origin"},
		"left in the checkout":            {&ending{work: work{change: changed("a"), verification: green}}, nil, "changed/left_in_checkout", "uncommitted; git status lists its files"},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.end
			e.Found = cmp.Or(e.Found, expecting("change"))
			rec := recordtest.New(t, "run-1")
			e.Workspace = workspace.Folder(rec, t.TempDir())
			stop := e.outcome(t.Context(), rec, c.err)
			must.Same(t, c.want, string(stop.Outcome)+"/"+stop.Reason, stop.Message, c.says)
			must.Contain(t, stop.Message, c.says)
			if stop == budget {
				t.Error("the end changes the stop that the agent keeps")
			}
		})
	}
}

func expecting(what string) *start.Found {
	return &start.Found{Assignment: &start.Assignment{Request: &start.Request{}, Settings: &settings.Settings{Job: job.Job{Task: job.Task{Expects: what}}}}}
}

// ended is the end of a run that registered nothing.
func ended() *ending {
	return &ending{Found: &start.Found{Assignment: &start.Assignment{Request: &start.Request{}}}}
}

func TestProjectsResultOfRunThatWroteNothing(t *testing.T) {
	rec := recordtest.New(t, "run-1")
	stop := outcome.Stopf(outcome.InvalidInput, "job", "The job has a mistake.")
	full := errors.New("the disk is full")
	view, err := rec.Conclude(ended().runFinished(stop), full)
	must.Is(t, full, err)
	want := record.NewResult("run-1", stop)
	want.TranscriptSHA256 = rec.Log().Head()
	must.Same(t, want, record.ResultFromView(view))
	if got := config.ProblemLines(config.Problems{{Key: "task.prompt", Message: "is missing"}}); len(got) != 1 || !strings.Contains(got[0], "task.prompt") {
		t.Errorf("the problems are %q", got)
	}
}

func TestReportsResumableRuns(t *testing.T) {
	rec := begun(t, "{}")
	ws := workspace.Folder(rec, t.TempDir())
	for name, c := range map[string]struct {
		rec  *record.Record
		ws   *workspace.Workspace
		a    start.Assignment
		o    outcome.Outcome
		want bool
	}{
		"a run that was cancelled":  {rec, ws, start.Assignment{Request: &start.Request{}}, outcome.Cancelled, true},
		"one that came to its end":  {rec, ws, start.Assignment{Request: &start.Request{}}, outcome.Changed, false},
		"one without a checkout":    {rec, nil, start.Assignment{Request: &start.Request{}}, outcome.Cancelled, false},
		"one of a scripted session": {rec, ws, start.Assignment{Request: &start.Request{Script: "s.yml"}}, outcome.Cancelled, true},
		"a replay":                  {rec, ws, start.Assignment{Request: &start.Request{Recording: &replay.Recording{}}}, outcome.Cancelled, false},
		"on a person's branch":      {rec, ws, start.Assignment{Request: &start.Request{}, Task: intake.Task{Pull: &forge.PullRequest{Head: "polish"}}}, outcome.Cancelled, false},
		"one that had not begun":    {record.New("", nil), ws, start.Assignment{Request: &start.Request{}}, outcome.Cancelled, false},
	} {
		e := ended()
		e.Assignment, e.Workspace = &c.a, c.ws
		must.Same(t, c.want, e.mayResume(c.rec, c.o), name)
	}
}

// reasons returns the reasons of an outcome that docs/reference/outcomes.md lists.
func reasons(t *testing.T, o outcome.Outcome) (all []string) {
	t.Helper()
	page := must.Get(os.ReadFile("../docs/reference/outcomes.md"))(t)
	_, part, _ := strings.Cut(string(page), "\n## "+string(o)+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(part, -1) {
		all = append(all, row[1])
	}
	if len(all) == 0 {
		t.Errorf("no reason of %s is listed", o)
	}
	return all
}

// TestOffersToResume goes through every end of a run: an offer names a limit that --set takes, and is not
// made where the run would come to the same end.
func TestOffersToResume(t *testing.T) {
	rec := begun(t, "{}")
	e := ended()
	e.Workspace = workspace.Folder(rec, t.TempDir())
	for _, o := range history.StoppedFromOutside {
		all := reasons(t, o)
		for _, reason := range history.NotResumable[o] {
			must.Same(t, true, slices.Contains(all, reason), "no run ends as", o, "/", reason)
		}
		for _, reason := range all {
			hint := e.resumeHint(rec, settings.Environment{}.Get, o, reason)
			must.Same(t, !slices.Contains(history.NotResumable[o], reason), strings.Contains(hint, "agent-ci resume "+rec.Path()), o, reason, hint)
			if o != outcome.BudgetExceeded {
				continue
			}
			_, key, _ := strings.Cut(hint, " --set ")
			if _, err := settings.SetLimits(job.Limits{}, []string{strings.TrimSuffix(key, "=….") + "=1"}); err != nil && !strings.HasSuffix(key, ".time=….") {
				t.Errorf("%s/%s offers %q: %v", o, reason, hint, err)
			}
		}
	}
	inCampaign := settings.Environment{settings.CampaignVariable + "=/ledger"}
	must.Same(t, "", e.resumeHint(rec, inCampaign.Get, outcome.Cancelled, "sigterm"), "a run of a campaign offers")
	rec = begun(t, `{"task":{"prompt":"`+history.RedactedMark+`X]"}}`)
	must.Same(t, "", e.resumeHint(rec, settings.Environment{}.Get, outcome.Cancelled, "sigint"), "a run whose job holds a secret offers")
}

func TestConvertsPanicToOutcome(t *testing.T) {
	err := recoverPanic(t.Context(), func(context.Context) error { panic("lost") })
	if stop := outcome.ForError(t.Context(), err); stop.Outcome != outcome.InternalError || stop.Reason != "panic" || !strings.Contains(stop.Message, "(lost)") {
		t.Errorf("%v", stop)
	}
}

func TestGivesGraceOnlyAfterTimeLimit(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	must.Do(t, runWithGrace(late, t.Context(), func(ctx context.Context) error { return ctx.Err() }), "no time is left")
	over, end := context.WithCancel(t.Context())
	end()
	must.Fail(t, "", runWithGrace(late, over, func(ctx context.Context) error { return ctx.Err() }), "a signal leaves time")
	must.Do(t, runWithGrace(t.Context(), t.Context(), func(ctx context.Context) error {
		if _, limited := ctx.Deadline(); limited {
			t.Error("a run without a limit gets one")
		}
		return nil
	}))
}
