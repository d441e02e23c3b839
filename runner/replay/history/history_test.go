package history

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// emptyRecord is a record without events, and its log.
func emptyRecord(t *testing.T, clock func() time.Time) (*record.Record, *eventlog.Log) {
	t.Helper()
	dir := must.Get(record.NewDirectory(t.TempDir(), ""))(t)
	t.Cleanup(dir.Close)
	log := must.Get(eventlog.Create(dir.Join(record.TranscriptFile), eventlog.Options{Clock: clock}))(t)
	t.Cleanup(func() { _ = log.Close() })
	rec := record.New("", nil)
	rec.Directory = dir
	return rec, log
}

func TestLimitsFollowLastResume(t *testing.T) {
	rec, log := emptyRecord(t, nil)
	for _, step := range []struct {
		event transcript.Type
		data  any
		want  int // calls that the run may make
	}{
		{transcript.TypeRunStarted, transcript.RunStarted{RunID: "r", Job: json.RawMessage(`{"limits":{"tool_calls":3}}`)}, 3},
		{transcript.TypeRunFinished, transcript.RunFinished{Outcome: "budget_exceeded"}, 3},
		{transcript.TypeRunResumed, transcript.RunResumed{Limits: []string{"limits.tool_calls=5"}}, 5},
		{transcript.TypeRunResumed, transcript.RunResumed{Limits: []string{"limits.turns=7"}}, 5},
		{transcript.TypeRunResumed, transcript.RunResumed{Limits: []string{"limits.tool_calls=4"}}, 4},
	} {
		must.Get(log.Append(step.event, step.data))(t)
		h := must.Get(Read(rec))(t)
		must.Same(t, step.want, h.Job.Limits.ToolCalls, step.event, step.data, "for the agent")
		must.Same(t, step.want, h.conversation.CallLimit, step.event, step.data, "for the agent")
	}
}

func TestDoesNotResumeUnreadableRecord(t *testing.T) {
	rec, log := emptyRecord(t, nil)
	must.Get(log.Append(transcript.TypeRunStarted, transcript.RunStarted{RunID: "r", Job: json.RawMessage(`{"limits":{"turns":"many"}}`)}))(t)
	must.Do(t, log.Close())
	outcometest.Want(t, must.Err(Reopen(t.Context(), record.New("", nil), rec.Path(), nil, "", nil)), "not_resumable")
}

func TestCountsCallsOfOtherAgents(t *testing.T) {
	rec, log := emptyRecord(t, nil)
	for _, step := range []struct {
		by    string
		event transcript.Type
		data  any
		want  int
	}{
		{"", transcript.TypeRunStarted, transcript.RunStarted{RunID: "r", Job: json.RawMessage(`{"limits":{"tool_calls":30}}`)}, 0},
		{"one", transcript.TypeAgentStarted, transcript.AgentStarted{StartedBy: transcript.MainAgent, ToolCalls: 10}, 10},
		{"below", transcript.TypeAgentStarted, transcript.AgentStarted{StartedBy: "one", ToolCalls: 4}, 10},
		{"below", transcript.TypeToolStarted, transcript.ToolStarted{}, 10},
		{"below", transcript.TypeAgentFinished, transcript.AgentFinished{Status: "completed"}, 10},
		{"one", transcript.TypeToolStarted, transcript.ToolStarted{}, 10},
		{"one", transcript.TypeAgentFinished, transcript.AgentFinished{Status: "completed"}, 2},
		{"two", transcript.TypeAgentStarted, transcript.AgentStarted{StartedBy: transcript.MainAgent, ToolCalls: 7}, 9},
		{"one", transcript.TypeAgentStarted, transcript.AgentStarted{StartedBy: transcript.MainAgent, ToolCalls: 6}, 13},
	} {
		by := log
		if step.by != "" {
			by = log.ForAgent(step.by)
		}
		must.Get(by.Append(step.event, step.data))(t)
		must.Same(t, step.want, must.Get(Read(rec))(t).conversation.SubagentCalls, step.event, step.by)
	}
}

func TestCountsTimeWithoutEvents(t *testing.T) {
	began := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	now := began
	rec, log := emptyRecord(t, func() time.Time { return now })
	must.Get(rec.MakeFolder(record.StateFolder))(t)
	for _, step := range []struct {
		name  string
		at    time.Duration // since the run began
		event transcript.Type
		data  any
		alive time.Duration
		want  time.Duration
	}{
		{"an event", 0, transcript.TypeWarning, transcript.Warning{}, 0, 0},
		{"killed in a long command", 10 * time.Second, transcript.TypeWarning, transcript.Warning{}, 90 * time.Second, 90 * time.Second},
		{"went on an hour later", time.Hour, transcript.TypeRunResumed, transcript.RunResumed{Seconds: 90}, 90 * time.Second, 90 * time.Second},
		{"killed at an event", time.Hour + 5*time.Second, transcript.TypeWarning, transcript.Warning{}, 90 * time.Second, 95 * time.Second},
		{"killed in a long command again", time.Hour + 6*time.Second, transcript.TypeWarning, transcript.Warning{}, time.Hour + time.Minute, 150 * time.Second},
		{"a clock that was put back", time.Hour + 7*time.Second, transcript.TypeWarning, transcript.Warning{}, 100 * 365 * 24 * time.Hour, 97 * time.Second},
	} {
		now = began.Add(step.at)
		must.Get(log.Append(step.event, step.data))(t)
		if step.alive > 0 {
			must.Do(t, rec.Write("state/alive", []byte(began.Add(step.alive).Format("2006-01-02T15:04:05.000Z"))))
		}
		must.Same(t, step.want, must.Get(Read(rec))(t).Elapsed, step.name, "the run lived")
	}
}

func TestRefusesUnresumableRecords(t *testing.T) {
	begun := func(alter func(*Run)) *Run {
		h := &Run{View: &transcript.View{}}
		h.Started = transcript.RunStarted{RunID: "r", Job: json.RawMessage(`{}`)}
		h.Workspace = transcript.Workspace{BaseSHA: "0123", Branch: "agent-ci/x"}
		h.Finished = &transcript.RunFinished{Outcome: "cancelled", Reason: "sigterm"}
		if alter != nil {
			alter(h)
		}
		return h
	}
	onPull := func(h *Run) { h.Task = transcript.Task{Source: "event", URL: "https://x/o/r/pull/7"} }
	for name, c := range map[string]struct {
		alter   func(*Run)
		pending bool
		says    string // empty: it can go on
	}{
		"a run that was cancelled":             {nil, false, ""},
		"a run that was killed":                {func(h *Run) { h.Finished = nil }, false, ""},
		"one that had not begun":               {func(h *Run) { h.Started.RunID = "" }, false, "before it had begun"},
		"one that ended":                       {func(h *Run) { h.Finished.Outcome = "changed" }, false, "it has ended"},
		"one whose work was not there yet":     {func(h *Run) { h.Finished.Outcome = "changed" }, true, ""},
		"invalid input before the agent began": {func(h *Run) { h.Finished.Outcome = "invalid_input" }, false, "it has ended"},
		"invalid input of an agent's run": {func(h *Run) {
			h.Finished.Outcome = "invalid_input"
			must.Do(t, h.conversation.Apply(transcript.Event{Content: transcript.ModelRequest{Turn: 1}}))
		}, false, ""},
		"a job with a secret":                   {func(h *Run) { h.Started.Job = json.RawMessage(`{"x":"[secret TOKEN]"}`) }, false, "holds a secret"},
		"on a pull request that was not in yet": {onPull, false, "before the change of its pull request"},
		"a limit that is as it was": {func(h *Run) {
			h.Finished.Outcome, h.Finished.Reason, h.Job.Limits.Turns, h.LimitsAtStop.Turns = "budget_exceeded", "turns", 5, 5
		}, false, "limits.turns is used up"},
		"a limit that was raised": {func(h *Run) {
			h.Finished.Outcome, h.Finished.Reason, h.Job.Limits.Turns, h.LimitsAtStop.Turns = "budget_exceeded", "turns", 6, 5
		}, false, ""},
		"a limit that was taken away": {func(h *Run) {
			h.Finished.Outcome, h.Finished.Reason, h.LimitsAtStop.CostUSD = "budget_exceeded", "cost", 5
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(c.alter)
			err := cmp.Or(h.checkResumable(c.pending), h.checkLimitRaised())
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestLocatesRequestOfRun(t *testing.T) {
	for name, c := range map[string]struct {
		task transcript.Task
		want form.Issue
	}{
		"nowhere":          {task: transcript.Task{Source: "prompt"}},
		"an issue":         {transcript.Task{Source: "event", Trigger: "label", Issue: "o/r#7", URL: "https://x/o/r/issues/7"}, form.Issue{Repository: "o/r", Number: 7}},
		"a pull request":   {transcript.Task{Source: "event", Trigger: "comment", Issue: "o/r#7", URL: "https://x/o/r/pull/9"}, form.Issue{Repository: "of/run", Number: 9}},
		"an issue by hand": {task: transcript.Task{Source: "issue", Issue: "o/r#7"}},
		"a dispatch":       {task: transcript.Task{Source: "event", Trigger: "dispatch"}},
	} {
		must.Same(t, c.want, (&Run{View: &transcript.View{Task: c.task, Workspace: transcript.Workspace{Repository: "of/run"}}}).RequestSubject(), name)
	}
}
