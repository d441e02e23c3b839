package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

func event(t *testing.T, kind transcript.Type, data any) transcript.Event {
	t.Helper()
	return eventBy(t, transcript.MainAgent, kind, data)
}

func eventBy(t *testing.T, agent string, kind transcript.Type, data any) transcript.Event {
	t.Helper()
	raw := must.Get(json.Marshal(data))(t)
	return transcript.Decode(eventlog.Event{Agent: agent, Type: kind, Data: raw})
}

// shownOn returns a function that folds events of one run and shows them.
func shownOn(w *Watch) func(transcript.Event) {
	run := transcript.NewFolder()
	return func(e transcript.Event) {
		run.Apply(e)
		w.Show(run.View(), e)
	}
}

// lineFor returns the line that is shown for an event, or "".
func lineFor(e transcript.Event) string {
	var lines strings.Builder
	shownOn(&Watch{Lines: &lines})(e)
	return strings.TrimSuffix(strings.TrimPrefix(lines.String(), "agent-ci: "), "\n")
}

func TestDescribesEvents(t *testing.T) {
	for want, e := range map[string]transcript.Event{
		"WARNING: commands run unconfined, with all rights of this user": event(t, transcript.TypePolicy, transcript.Policy{Level: "none"}),
		"commands are confined: landlock (seccomp); work tree: checkout (no overlay: it takes namespaces)": event(t, transcript.TypePolicy, transcript.Policy{
			Level: "landlock", Layers: []string{"seccomp"}, WorkTree: "checkout", NoOverlay: "it takes namespaces",
		}),
		"  refused to reach h:443: It is not listed.": event(t, transcript.TypeNetwork, transcript.HostRequest{Target: "h:443", Reason: "It is not listed."}),
		"":                                 event(t, transcript.TypeNetwork, transcript.HostRequest{Target: "h:443", Allowed: true}),
		"    exec_command ls":              event(t, transcript.TypeToolStarted, transcript.ToolStarted{Tool: "exec_command", Caller: 1, Input: `{"cmd":"ls"}`}),
		"  plan: 1 of 3 done, now: Test":   event(t, transcript.TypePlan, transcript.Plan{Steps: []transcript.PlanStep{{Status: "completed"}, {Step: "Write", Status: "pending"}, {Step: "Test", Status: "in_progress"}}}),
		"before the change: test is green": event(t, transcript.TypeVerify, transcript.Verify{Rows: []transcript.VerifyRow{{Name: "test", Before: "green"}}}),
		"warning: two lines":               event(t, transcript.TypeWarning, transcript.Warning{Message: "two\nlines"}),
	} {
		must.Same(t, want, lineFor(e), e.Type)
	}
	for _, e := range []transcript.Event{event(t, "unknown", 1)} {
		must.Same(t, "", lineFor(e), e.Type, e.Data, "is shown as")
	}
}

// full is a writer that takes nothing after its first line.
type full struct{ taken bytes.Buffer }

func (f *full) Write(p []byte) (int, error) {
	if f.taken.Len() > 0 {
		return 0, errors.New("nobody reads")
	}
	return f.taken.Write(p)
}

func TestStopsWritingToFailedOutputs(t *testing.T) {
	var lines, events full
	w := &Watch{Lines: &lines, Events: &events}
	show := shownOn(w)
	for range 3 {
		show(event(t, transcript.TypeWarning, transcript.Warning{Message: "Look."}))
	}
	if w.Lines != nil || w.Events != nil {
		t.Error("it is still written to them")
	}
	must.Same(t, "agent-ci: warning: Look.\n", lines.taken.String(), "the lines")
}

// An event without a line opens no part of the log.
func TestOpensNoEmptyLogGroup(t *testing.T) {
	var log bytes.Buffer
	step := &actions.Step{Log: actions.NewLog(&log)}
	w := &Watch{Lines: step.Log, Step: step}
	show := shownOn(w)
	show(event(t, transcript.TypeSetup, transcript.Setup{Name: "tools", ExitCode: 3}))
	show(event(t, transcript.TypeChange, transcript.Change{}))
	show(event(t, transcript.TypePublish, transcript.Publish{Step: "commit", HeadSHA: "0123456789abcdef", Branch: "b"}))
	show(event(t, transcript.TypeRunFinished, transcript.RunFinished{}))
	want := "::group::Setup\nagent-ci: setup tools: exit 3 after 0.0 s\n::endgroup::\n::group::Publishing\nagent-ci: committed 0123456789ab on b\n::endgroup::\n"
	must.Same(t, want, log.String())
}

// In the log of a step no event begins a command, whatever its text.
func TestEventsBeginNoCommand(t *testing.T) {
	var events bytes.Buffer
	shownOn(&Watch{Events: &events, Step: &actions.Step{Log: actions.NewLog(new(bytes.Buffer))}})(event(t, transcript.TypeWarning, transcript.Warning{Message: "##[error]forged"}))
	must.Contain(t, events.String(), `##\u005berror]forged`)
}

func TestMasksSecretsInRunnerLog(t *testing.T) {
	for masks, want := range map[bool]bool{true: true, false: false} {
		var log bytes.Buffer
		w := &Watch{Step: &actions.Step{Log: actions.NewLog(&log), MayMask: masks}}
		w.Mask([]secrets.Value{{Name: "TOKEN", Secret: "s3cr3t-value"}})
		must.Same(t, want, strings.Contains(log.String(), "::add-mask::s3cr3t-value"), masks, log.String())
	}
	(&Watch{}).Mask([]secrets.Value{{Secret: "s3cr3t-value"}}) // no step, nothing to do
}

// wall is a repository from which the comment was deleted.
type wall struct{ forge.Repository }

func (wall) EditComment(context.Context, int64, string) error { return errors.New("no such comment") }

func TestMissingCommentFailsAtEnd(t *testing.T) {
	var w Watch
	show := shownOn(&w)
	w.Comment(t.Context(), Thread{Repository: wall{}, Number: 7, Earlier: 4})
	show(event(t, transcript.TypePlan, transcript.Plan{}))
	must.Fail(t, "", w.Conclude(t.Context(), End{Stop: outcome.Stopf(outcome.Changed, "pushed", "Done.")}), "nothing is told")
}

func TestFindsPlacesOfFailedChecks(t *testing.T) {
	rec := recordtest.New(t, "r")
	log := "ok\n" +
		"a.go:3:7: undefined: x\n" +
		"  ./sub/b.go:12: it differs\n" +
		"/etc/passwd:1: not ours\n" +
		"../../out.go:1: not ours either\n" +
		"c.go:0: no line\n" + strings.Repeat("d.go:1: again\n", 20)
	must.Do(t, rec.Write("outputs.log", []byte(log)))
	row := transcript.VerifyRow{Name: "lint", After: "red", Log: "outputs.log"}
	got := StepResult{Record: rec, Folder: "web"}.locationsIn(row)
	want := []actions.Annotation{
		{Level: "error", Title: "lint", File: "web/a.go", Line: 3, Column: 7, Message: "undefined: x"},
		{Level: "error", Title: "lint", File: "web/sub/b.go", Line: 12, Message: "it differs"},
	}
	must.Same(t, maxLocations, len(got), "places", got)
	must.Same(t, want, got[:min(2, len(got))])
	row.Log = "not-there.log"
	must.None(t, StepResult{Record: rec}.locationsIn(row), "a log that is gone names")
}

func TestAnnotatesEndAndWarnings(t *testing.T) {
	told := StepResult{Record: record.New("", nil), Result: record.Result{
		Outcome: outcome.VerifyFailed, Message: "It is red.", Warnings: []transcript.Warning{{Code: "short_secret", Message: "It is short."}},
		Verify: []transcript.VerifyRow{{Name: "green", Passed: true, After: "green", Log: "l"}, {Name: "not run"}},
	}}
	want := []actions.Annotation{
		{Level: "error", Title: "agent-ci: verify_failed", Message: "It is red."},
		{Level: "warning", Title: "agent-ci: short_secret", Message: "It is short."},
	}
	must.Same(t, want, told.annotations())
	told.Result.Outcome = outcome.Changed
	must.Same(t, "notice", told.annotations()[0].Level, "a change is a")
}

func TestLinksOnlyForgePages(t *testing.T) {
	for address, linked := range map[string]bool{
		"https://ghe.example.com/o/r/pull/7":           true,
		"https://evil.example.com/o/r/pull/7":          false,
		"https://ghe.example.com/o/r/pull/7?x=](y)":    false,
		"https://ghe.example.com.evil.net/o/r/pull/7":  false,
		"javascript:https://ghe.example.com/o/pull/7/": false,
	} {
		told := StepResult{Record: record.New("", nil), Site: transcript.Site{Server: "https://ghe.example.com", Repository: "o/r"}, Result: record.Result{
			Outcome: outcome.Changed, Reason: "pull_request", Message: "Done.", PullRequest: record.PullRequest{Number: 7, URL: address, Operation: "created"},
		}}
		summary := told.summary()
		must.Same(t, linked, strings.Contains(summary, "]("+address+")"), address, summary)
		must.Contain(t, summary, "pull_request: Done.")
	}
}

// The end of a run begins with the verdict on its change, whatever the names of checks try.
func TestShowsVerdictAtEnd(t *testing.T) {
	var lines bytes.Buffer
	w := &Watch{Lines: &lines}
	show := shownOn(w)
	show(event(t, transcript.TypeChange, transcript.Change{Files: []changeset.File{{Path: "a"}}}))
	show(event(t, transcript.TypeVerify, transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{{Name: "a\x1b[2J\nb", After: "red"}}}))
	show(event(t, transcript.TypeRunFinished, transcript.RunFinished{Outcome: "verify_failed", Seconds: 7}))
	if want := "agent-ci: ✗ check a\u241b[2J b fails: do not merge (7 s)\n"; !strings.HasSuffix(lines.String(), want) {
		t.Errorf("the lines are %q, want %q at their end", lines.String(), want)
	}
}
