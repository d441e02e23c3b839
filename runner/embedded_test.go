package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

// counter is a tool of a program that embeds this package: it knows how often it was called.
func counter(times *int) tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: "count", Description: "Counts.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"description":{"type":"string"}},"required":["description"]}`),
		},
		Mutates: true,
		Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
			var a struct{ Description string }
			if err := call.Arguments(&a); err != nil {
				return tools.Result{}, err
			}
			*times++
			if a.Description == "long" {
				return tools.Result{Output: strings.Repeat("a line\n", 20_000)}, nil
			}
			return tools.Result{Output: fmt.Sprintf("%s: %d", a.Description, *times)}, nil
		},
	}
}

func counting(t *testing.T, all ...tools.Tool) Options {
	t.Helper()
	repo := committed(t, map[string]string{"README": "Hi.\n"})
	script := filepath.Join(t.TempDir(), "session.yml")
	must.Do(t, os.WriteFile(script, []byte(`version: 1
turns:
  - output: [{call: count, arguments: {description: sheep}}, {call: count, arguments: {description: long}}, {call: count, arguments: {}}]
  - expect: ["sheep: 1", "truncated output"]
    output: [{say: I counted.}]
  - output: [{say: I counted.}]
`), 0o600))
	return Options{
		Prompt: "Count.", Dir: repo.Dir, Out: filepath.Join(t.TempDir(), "run"), Publish: "none", Replay: script, Tools: all,
		Set:          []string{"policy.sandbox=danger-full-access"},
		Surroundings: Surroundings{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, Quiet: true},
	}
}

func TestCallsRecordsAndReplaysEmbeddedTools(t *testing.T) {
	times := 0
	o := counting(t, counter(&times))
	result := Run(t.Context(), o)
	if result.Outcome != outcome.NoChanges || times != 2 {
		t.Fatalf("%s after %d calls: %s", result.Outcome, times, result.Message)
	}
	rec := must.Get(replay.Open(o.Out, nil))(t)
	defer rec.Record.Close()
	var outputs []string
	_, err := rec.Record.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		if e.Type != transcript.TypeToolFinished {
			return nil
		}
		var d transcript.ToolFinished
		err := json.Unmarshal(e.Data, &d)
		outputs = append(outputs, fmt.Sprint(d.Tool, " ", d.Failed, " ", d.Output[:min(30, len(d.Output))]))
		return err
	})
	want := []string{"count false sheep: 1", "count false Warning: truncated output (ori", "count true count: the arguments: expected"}
	must.Do(t, err)
	must.Same(t, want, outputs)
	for _, frozen := range []bool{false, true} {
		must.None(t, must.Get(Replay(t.Context(), ReplayOptions{RunDir: o.Out, Frozen: frozen, Surroundings: Surroundings{Environ: o.Environ}}))(t).Differences, frozen, times)
		must.Same(t, 2, times, frozen)
	}
}

func TestRefusesEmbeddedToolsForTextEditModel(t *testing.T) {
	times := 0
	o := counting(t, counter(&times))
	o.Set = append(o.Set, "model.tools=aider-diff")
	if result := Run(t.Context(), o); result.Reason != "bad_tool" || !strings.Contains(result.Message, "with model.tools: aider-diff a model calls nothing") || times != 0 {
		t.Errorf("%s/%s after %d calls: %s", result.Outcome, result.Reason, times, result.Message)
	}
}

func TestRefusesInvalidEmbeddedTools(t *testing.T) {
	run := func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }
	object := json.RawMessage(`{"type":"object"}`)
	fine := tools.Tool{Spec: tools.Spec{Description: "Does it.", Name: "fine", Parameters: object}, Run: run}
	for want, bad := range map[string]tools.Tool{
		"its name must be":                        {Spec: tools.Spec{Description: "Does it.", Name: "a b", Parameters: object}, Run: run},
		"agent-ci's own tool exec_command":        {Spec: tools.Spec{Description: "Does it.", Name: "Bash", Parameters: object}, Run: run},
		"names that begin with mcp__":             {Spec: tools.Spec{Description: "Does it.", Name: "MCP__a", Parameters: object}, Run: run},
		"it has no Description":                   {Spec: tools.Spec{Name: "a", Description: " ", Parameters: object}, Run: run},
		"must be a JSON Schema with type: object": {Spec: tools.Spec{Description: "Does it.", Name: "a", Parameters: json.RawMessage(`{"type":"array"}`)}, Run: run},
		"another tool has its name":               fine,
		"it has no Run":                           {Spec: tools.Spec{Description: "Does it.", Name: "a", Parameters: object}},
		"it must be a function, with Parameters":  {Spec: tools.Spec{Description: "Does it.", Name: "a", Grammar: "x"}, Run: run},
		"its Parameters are no JSON Schema":       {Spec: tools.Spec{Description: "Does it.", Name: "a", Parameters: json.RawMessage(`{"type":3}`)}, Run: run},
	} {
		outcometest.Want(t, extensions.KeepEmbedded(recordtest.New(t, "run-1"), &job.Job{}, []tools.Tool{fine, bad}), "invalid_input/bad_tool", want)
	}
}
