package progress

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

// A log is not silent for longer than half a minute while something runs, and gets no more lines
// than that.
func TestQuietLogShowsRunningWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		step := &actions.Step{Log: actions.NewLog(&log)}
		w := &Watch{Lines: step.Log, Step: step}
		show := shownOn(w)
		over := w.ShowStatus(t.Context(), nil)
		tests := w.BeginActivity(record.PhaseBaseline, "check tests\x1b[2J")
		time.Sleep(20 * time.Second)
		show(event(t, transcript.TypeWarning, transcript.Warning{Message: "Look."}))
		time.Sleep(61 * time.Second)
		lint := w.BeginActivity("", "check lint")
		time.Sleep(30 * time.Second)
		lint()
		tests()
		show(event(t, transcript.TypeModelRequest, transcript.ModelRequest{Turn: 1}))
		time.Sleep(31 * time.Second)
		over()
		time.Sleep(time.Minute)
		want := "::group::Baseline\nagent-ci: warning: Look.\n" +
			"agent-ci: … baseline: check tests␛[2J, running for 50 s\n" +
			"agent-ci: … baseline: check tests␛[2J, running for 1 min 20 s\n" +
			"agent-ci: … baseline: check lint and 1 more, running for 29 s\n" +
			"::endgroup::\n::group::Agent\nagent-ci: turn 1\n" +
			"agent-ci: … agent: waiting for the model for 30 s\n"
		must.Same(t, want, log.String())
	})
}

// on is a terminal that many columns wide, whose text is written to to.
func on(to io.Writer, columns int) *Watch {
	return &Watch{Lines: to, Terminal: &Terminal{Columns: func() int { return columns }}}
}

// drawings are the status lines that were drawn, and the lines between them.
func drawings(written string) (all []string) {
	for _, part := range strings.Split(written, eraseBelow) {
		part = strings.TrimSuffix(strings.ReplaceAll(part, noWrap, ""), wrap+"\r")
		if part != "" {
			all = append(all, part)
		}
	}
	return all
}

func TestDrawsStatusLineEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		w := on(&written, 100)
		show := shownOn(w)
		over := w.ShowStatus(t.Context(), nil)
		setup := w.BeginActivity(record.PhaseSetup, "setup command tools")
		time.Sleep(2*time.Second + time.Millisecond)
		setup()
		show(event(t, transcript.TypeSetup, transcript.Setup{Name: "tools", Seconds: 2}))
		over()
		want := []string{
			"[Setup 0:00] setup command tools",
			"[Setup 0:01] setup command tools 0:01",
			"[Setup 0:02] setup command tools 0:02",
			"[Setup 0:02] preparing",
			"agent-ci: setup tools: exit 0 after 2.0 s\n",
			"[Setup 0:02] preparing",
		}
		must.Same(t, want, drawings(written.String()))
		must.Same(t, true, strings.HasSuffix(written.String(), eraseBelow), "the last line is not erased", written.String())
	})
}

// The first signal is answered; after the one that leaves the process to its fate nothing is drawn
// that nobody would erase.
func TestLastSignalErasesStatusLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		w := on(&written, 100)
		ctx, cancel := context.WithCancel(t.Context())
		hurry, again := context.WithCancel(t.Context())
		over := w.ShowStatus(ctx, hurry)
		w.BeginActivity(record.PhaseAgent, "exec_command make")
		cancel()
		synctest.Wait()
		if got := drawings(written.String()); got[len(got)-1] != "[Stopping 0:00] another Ctrl-C leaves at once" {
			t.Errorf("after a signal: %q", got)
		}
		again()
		synctest.Wait()
		must.Same(t, true, strings.HasSuffix(written.String(), eraseBelow), "after two", written.String())
		before := written.Len()
		w.BeginActivity(record.PhasePublishing, "commit on b")
		time.Sleep(5 * time.Second)
		over()
		must.Same(t, "", written.String()[before:], "then it draws")
	})
	synctest.Test(t, func(t *testing.T) { // where the second signal ends the process
		var written bytes.Buffer
		w := on(&written, 100)
		ctx, cancel := context.WithCancel(t.Context())
		over := w.ShowStatus(ctx, nil)
		w.BeginActivity(record.PhasePublishing, "commit on b")
		cancel()
		synctest.Wait()
		must.Same(t, true, strings.HasSuffix(written.String(), eraseBelow), "it draws", written.String())
		over()
	})
}

// stuck is a writer whose reader has stopped reading.
type stuck struct {
	begun sync.Once
	at    chan struct{}
	end   <-chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.begun.Do(func() { close(s.at) })
	<-s.end
	return len(p), nil
}

func TestStuckTerminalBlocksNoExit(t *testing.T) {
	end := make(chan struct{})
	to := &stuck{at: make(chan struct{}), end: end}
	w := on(to, 100)
	hurry, now := context.WithCancel(t.Context())
	over := w.ShowStatus(t.Context(), hurry)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.BeginActivity(record.PhaseSetup, "setup command tools")
	}()
	<-to.at
	now()
	over()
	close(end)
	<-ended
}

// In the background the terminal is the shell's: nothing is drawn, and nothing erased.
func TestDrawsNothingInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		var columns atomic.Int64
		columns.Store(100)
		w := on(&written, 0)
		show := shownOn(w)
		w.Terminal.Columns = func() int { return int(columns.Load()) }
		over := w.ShowStatus(t.Context(), nil)
		w.BeginActivity(record.PhaseSetup, "setup command tools")
		columns.Store(0)
		before := written.Len()
		time.Sleep(3 * time.Second)
		show(event(t, transcript.TypeWarning, transcript.Warning{Message: "Look."}))
		over()
		must.Same(t, "agent-ci: warning: Look.\n", written.String()[before:], "it writes")
	})
}

func TestStatusLineShowsRunningWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{}
		show := shownOn(w)
		by := func(agent string, kind transcript.Type, data any) {
			t.Helper()
			show(eventBy(t, agent, kind, data))
		}
		list := &price.List{Rates: price.Rates{Input: 1, Output: 1}}
		line := func(cells int) string {
			head, rest := w.current.terminalLine(time.Now(), cells)
			if n := cellCount(head + rest); n > cells {
				t.Errorf("%q takes %d cells of %d", head+rest, n, cells)
			}
			return head + rest
		}
		expect := func(want string) {
			t.Helper()
			must.Same(t, want, line(99))
		}
		w.current.startedAt = time.Now()
		w.InitStatus(nil, 2, 500_000)
		by(transcript.MainAgent, transcript.TypeRunStarted, transcript.RunStarted{RunID: "r", Price: list})
		expect("[Setup 0:00] preparing")
		by(transcript.MainAgent, transcript.TypeModelRequest, transcript.ModelRequest{Turn: 1})
		time.Sleep(75 * time.Second)
		expect("[Agent 1:15] waiting for the model 1:15")
		steps := []transcript.PlanStep{{Step: "Look", Status: "completed"}, {Step: "Mend the 世界 of\n\x1b[2Jgreetings", Status: "in_progress"}, {Step: "Run the tests", Status: "pending"}}
		by(transcript.MainAgent, transcript.TypePlan, transcript.Plan{Steps: steps})
		by(transcript.MainAgent, transcript.TypeToolStarted, transcript.ToolStarted{CallID: "c", Number: 1, Tool: "exec_command", Input: `{"cmd":"go test ./... \u0007"}`})
		time.Sleep(time.Second)
		expect("[Agent 1:16] exec_command go test ./... ␇ 0:01 (+1) · step 2/3: Mend the 世界 of ␛[2Jgreetings")
		by(transcript.MainAgent, transcript.TypeModelResponse, transcript.ModelResponse{Turn: 1, Usage: transcript.Usage{Input: 700_000, Output: 50_000}})
		expect("[Agent 1:16] exec_command go test ./... ␇ 0:01 · step 2/3: Mend the 世界 of ␛[2Jg… · $0.75 of $2.00")
		by("a1", transcript.TypeAgentStarted, transcript.AgentStarted{Name: "Ada", Role: "explorer", Price: list})
		by("a1", transcript.TypeModelRequest, transcript.ModelRequest{Turn: 1})
		by(transcript.MainAgent, transcript.TypeToolFinished, transcript.ToolFinished{CallID: "c", Number: 1, Tool: "exec_command"})
		expect("[Agent 1:16] Ada: waiting for the model · step 2/3: Mend the 世界 of ␛[… · 1 agent · $0.75 of $2.00")
		by("a1", transcript.TypeModelResponse, transcript.ModelResponse{Turn: 1, Usage: transcript.Usage{Input: 250_000}})
		by("a1", transcript.TypeAgentFinished, transcript.AgentFinished{Status: "completed"})
		by(transcript.MainAgent, transcript.TypeChange, transcript.Change{})
		expect("[Verification 1:16] looking at the change · $1.00 of $2.00")
		over := w.BeginActivity(record.PhaseVerification, strings.Repeat("check e\u0301\u0301\u0301\u0301\u0301\u0301\u0301世", 30))
		time.Sleep(10 * time.Hour)
		for cells := range 120 {
			line(cells)
		}
		if got := line(60); !strings.HasSuffix(got, "… 10:00:00 · $1.00 of $2.00") || strings.Contains(got, strings.Repeat("\u0301", maxMarks+1)) {
			t.Errorf("got %q", got)
		}
		over()
		by(transcript.MainAgent, transcript.TypeModelFallback, transcript.ModelFallback{Turn: 1, To: "no-price"})
		by(transcript.MainAgent, transcript.TypeModelResponse, transcript.ModelResponse{Turn: 2, Usage: transcript.Usage{Input: 1_000}})
		if got := line(99); !strings.HasSuffix(got, " · 1,001,000 of 500,000 tokens") {
			t.Errorf("without a price: %q", got)
		}
	})
}

// A call that waits for a command that ran on is shown as the command, with all its time.
func TestStatusNamesAwaitedCommand(t *testing.T) {
	var lines bytes.Buffer
	w := &Watch{Lines: &lines}
	show := shownOn(w)
	synctest.Test(t, func(t *testing.T) {
		call := func(agent string, number int, tool, input string, took time.Duration, detail map[string]any, want string) {
			t.Helper()
			show(eventBy(t, agent, transcript.TypeToolStarted, transcript.ToolStarted{Number: number, Tool: tool, Input: input}))
			time.Sleep(took)
			must.Same(t, "… setup: "+want, w.current.logLine(time.Now()), want)
			show(eventBy(t, agent, transcript.TypeToolFinished, transcript.ToolFinished{Number: number, Tool: tool, Detail: detail}))
		}
		runs := map[string]any{"session_id": 1000}
		call(transcript.MainAgent, 1, "exec_command", `{"cmd":"make test"}`, 10*time.Second, runs, "exec_command make test, running for 10 s")
		call(transcript.MainAgent, 2, "write_stdin", `{"session_id":1000}`, 50*time.Second, runs, "exec_command make test, running for 1 min 0 s")
		call(transcript.MainAgent, 3, "write_stdin", `{"session_id":1000}`, 30*time.Second, nil, "exec_command make test, running for 1 min 30 s")
		call(transcript.MainAgent, 4, "write_stdin", `{"session_id":1001}`, time.Second, nil, "write_stdin 1001, running for 1.0 s")
		call("a1", 1, "write_stdin", `{"session_id":1000}`, time.Second, nil, "a1: write_stdin 1000, running for 1.0 s")
	})
}

// A run that is resumed has cost what it had cost.
func TestResumedStatusKeepsTotals(t *testing.T) {
	list := &price.List{Rates: price.Rates{Input: 1, Output: 1}}
	run := transcript.NewFolder()
	for _, e := range []transcript.Event{
		event(t, transcript.TypeRunStarted, transcript.RunStarted{Price: list}),
		event(t, transcript.TypePlan, transcript.Plan{Steps: []transcript.PlanStep{{Step: "Mend", Status: "pending"}}}),
		event(t, transcript.TypeModelResponse, transcript.ModelResponse{Turn: 2, Usage: transcript.Usage{Input: 100_000}}),
		eventBy(t, "a1", transcript.TypeAgentStarted, transcript.AgentStarted{Name: "Ada\x1b[2J", Price: list}),
		eventBy(t, "a1", transcript.TypeModelResponse, transcript.ModelResponse{Turn: 1, Usage: transcript.Usage{Input: 100_000}}),
		eventBy(t, "a1", transcript.TypeAgentFinished, transcript.AgentFinished{Status: "completed"}),
	} {
		run.Apply(e)
	}
	var lines bytes.Buffer
	w := &Watch{Lines: &lines}
	w.InitStatus(run.View(), 0, 0)
	line := func() string {
		_, rest := w.current.terminalLine(time.Now(), 99)
		return rest
	}
	must.Same(t, " preparing · $0.20", line())
	for _, e := range []transcript.Event{
		event(t, transcript.TypeModelRequest, transcript.ModelRequest{Turn: 3}),
		event(t, transcript.TypeModelResponse, transcript.ModelResponse{Turn: 3, Usage: transcript.Usage{Input: 100_000}}),
		eventBy(t, "a1", transcript.TypeWarning, transcript.Warning{Message: "Look."}),
		event(t, transcript.TypeRunFinished, transcript.RunFinished{}),
	} {
		run.Apply(e)
		w.Show(run.View(), e)
	}
	want := "agent-ci: turn 3; so far 200,000 tokens in (0 cached), 0 out, $0.2000\n" +
		"agent-ci: Ada␛[2J: warning: Look.\n" +
		"agent-ci: used 4 turns, 300,000 tokens in (0 cached), 0 out, $0.3000\n"
	must.Same(t, want, lines.String())
	must.Same(t, " preparing the next step · step 1/1: Mend · $0.30", line())
}
