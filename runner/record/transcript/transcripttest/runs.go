// Package transcripttest provides runs with transcripts for the tests of several packages.
package transcripttest

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

type Happening struct {
	Kind transcript.Type
	Data any
}

// Recorded is the log of a run with an event a second, as it lies on disk.
func Recorded(t testing.TB, run []Happening) string {
	t.Helper()
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	log, err := eventlog.Create(path, eventlog.Options{Clock: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	must.Do(t, err)
	for _, h := range run {
		must.Do(t, must.Err(log.Append(h.Kind, h.Data)))
	}
	must.Do(t, log.Close())
	return string(must.Get(os.ReadFile(path))(t))
}

// Folded returns the view of a run. Long texts of its entries are cut.
func Folded(t testing.TB, run []Happening) *transcript.View {
	t.Helper()
	return must.Get(transcript.FoldWithEntries(strings.NewReader(Recorded(t, run))))(t)
}

// Message returns an answer's item with text.
func Message(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{
		"type": "message", "role": "assistant",
		"content": []map[string]any{{"type": "output_text", "text": text}},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// Said returns an answer with text and no call.
func Said(turn int, text string) Happening {
	return Happening{transcript.TypeModelResponse, transcript.ModelResponse{
		Turn: turn, Status: "completed", Output: []json.RawMessage{Message(text)},
		Usage: transcript.Usage{Input: 4200, Cached: 3100, Output: 310, Reasoning: 120},
	}}
}

func Called(turn int, id, tool, input string) Happening {
	return Happening{transcript.TypeToolStarted, transcript.ToolStarted{Turn: turn, CallID: id, Tool: tool, Input: input, Offered: true}}
}

// Ended returns the end of a command's call.
func Ended(turn int, id, tool, output string, exit int) Happening {
	return Happening{transcript.TypeToolFinished, transcript.ToolFinished{
		Turn: turn, CallID: id, Tool: tool, Output: output, Failed: exit != 0, Bytes: int64(len(output)), Seconds: 0.31,
		Detail: map[string]any{"exit_code": exit},
	}}
}

// CalledBy returns a call of a script, or outside of one if caller is 0.
func CalledBy(turn, number, caller int, id, tool, input string) Happening {
	return Happening{transcript.TypeToolStarted, transcript.ToolStarted{Turn: turn, Number: number, Caller: caller, CallID: id, Tool: tool, Input: input, Offered: true}}
}

// EndOfCallBy returns the end of such a call.
func EndOfCallBy(turn, number, caller int, id, tool, output string) Happening {
	return Happening{transcript.TypeToolFinished, transcript.ToolFinished{
		Turn: turn, Number: number, Caller: caller, CallID: id, Tool: tool, Output: output, Bytes: int64(len(output)), Seconds: 0.11,
	}}
}

var (
	//go:embed greeting.jsonl
	greeting string
	//go:embed scripts.jsonl
	scripts string
	//go:embed rich.jsonl
	rich string
)

// Greeting returns a complete run that fixes a failing test.
func Greeting() []Happening { return parse(greeting) }

// Scripts returns a run whose model uses a concurrent script.
func Scripts() []Happening { return parse(scripts) }

// Rich returns a run with content for every section.
func Rich() []Happening { return parse(rich) }

// parse returns the events in a text that has the type and data of one in each line.
func parse(text string) (run []Happening) {
	for line := range strings.Lines(text) {
		var raw eventlog.Event
		err := json.Unmarshal([]byte(line), &raw)
		e := transcript.Decode(raw)
		if err = cmp.Or(err, e.Damage); err != nil {
			panic(err)
		}
		run = append(run, Happening{e.Type, e.Content})
	}
	return run
}

func Finished(seconds float64) Happening {
	return Happening{transcript.TypeRunFinished, transcript.RunFinished{
		Outcome: "changed", Reason: "pull_request", Message: "Pull request #8 was created.", Turns: 4, Calls: 3, Seconds: seconds,
	}}
}

func Numbered(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// Long returns a run with that number of events, most of them calls with outputs.
func Long(events int) []Happening {
	run := Greeting()[:7]
	for i := 0; len(run) < events; i++ {
		id := fmt.Sprintf("call_%d", i)
		run = append(run, Said(i+1, "I go on."),
			Called(i+1, id, "exec_command", `{"cmd":"go test ./...","workdir":"."}`), Ended(i+1, id, "exec_command", Numbered(60), 0))
	}
	return run[:events]
}
