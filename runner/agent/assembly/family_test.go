package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/report"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// addToyFamily adds a family as a new one is added: its tools, a row of package dialect, and a row of families.
func addToyFamily(t *testing.T) {
	t.Helper()
	was := dialect.Tools
	t.Cleanup(func() {
		dialect.Tools = was
		delete(families, "toy")
	})
	dialect.Tools = append(slices.Clone(was), dialect.Tool{
		Name: "put", Kind: dialect.Edits, Family: "toy", Names: []string{"place"}, Claude: "Write", Path: "where",
		Renamed: map[string]string{"where": "file_path", "text": "content"},
		Takes:   []dialect.Argument{{Name: "where", Also: []string{"file"}}, {Name: "text"}},
	})
	families["toy"] = family{phrases: briefing.ToolCallPhrases(), writingTools: func(_ *Agent, _ *toolbox, o files.Options, _ *patch.Patcher) []tools.Tool {
		return []tools.Tool{{
			Spec: tools.Spec{Name: "put", Description: "Writes a file.", Parameters: json.RawMessage(
				`{"type":"object","properties":{"where":{"type":"string"},"text":{"type":"string"}},"required":["where","text"],"additionalProperties":false}`)},
			Mutates: true,
			Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
				var a struct{ Where, Text string }
				err := errors.Join(call.Arguments(&a), os.WriteFile(filepath.Join(o.Dir.Path, a.Where), []byte(a.Text), 0o600))
				return tools.Result{Output: "Put " + a.Where + "."}, err
			},
		}}
	}}
}

// A new family is its folder, a row in package dialect and a row in families. Hooks, matchers, reports and
// replays know its tools by these.
func TestSupportsNewToolFamily(t *testing.T) {
	addToyFamily(t)
	const text = `version: 1
task: {prompt: x}
model: {name: gpt-5}
hooks:
  guard: {on: PreToolUse, tools: [%s], run: [sh, -c, 'if grep -q "file_path.:.[^,]*/secret\""; then exit 2; fi']}
`
	for _, matcher := range []string{"Write", "put", "apply_patch"} {
		j, err := job.Load(config.Layer{Kind: config.FileLayer, Name: "job.yml", Data: []byte(strings.Replace(text, "%s", matcher, 1))})
		must.Do(t, err, "the matcher", matcher)
		j.Model.Tools = "toy" // the keys of jobs were made before the row was added
		first, page := workWithToys(t, j)
		must.Same(t, []string{"Put a.txt.", "Put b.txt.", "refused"}, first, "with a hook on", matcher)
		must.Contain(t, page, `<b>put</b> <code>a.txt</code>`, `Wrote <code>a.txt</code></p><pre class="change"><ins><span>new`)
		again, _ := workWithToys(t, j)
		must.Same(t, first, again, "a replay")
	}
	must.Fail(t, "", must.Err(job.Load(config.Layer{Kind: config.FileLayer, Name: "job.yml", Data: []byte(strings.Replace(text, "%s", "puts", 1))})), "a matcher of no tool is taken")
}

// workWithToys returns the outputs of the calls of a session, and the report.
func workWithToys(t *testing.T, j *job.Job) (outputs []string, page string) {
	t.Helper()
	o := site(t, j, map[string]string{"a.txt": "old\n"})
	all := must.Get(hooks.Combine(nil, j.Hooks, func(string, int64) ([]byte, error) { return nil, os.ErrNotExist }, ""))(t)
	o.Began = time.Now()
	base := t.TempDir()
	o.Hooks = &hooks.Hooks{All: all, Record: o.Record, Facts: hooks.Facts{WorkDir: o.Workspace.Root(), Path: "."}, Sandboxes: hooks.SandboxProvider{
		Environ: os.Environ(), BaseTree: func(context.Context) (string, error) { return base, nil },
		Open: func(context.Context, *sandbox.Sandbox) (*sandbox.Sandbox, error) { return new(sandbox.Sandbox), nil },
	}}
	t.Cleanup(o.Hooks.CloseSandbox)
	ran(t, briefed(t, o, `
  - output:
      - {call: put, arguments: {where: a.txt, text: "new\n"}}
      - {call: place, arguments: {file: b.txt, text: "more\n"}}
      - {call: put, arguments: {where: secret, text: "x"}}
  - output: [{say: Done.}]
`))
	must.Get(o.Record.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		var d transcript.ToolFinished
		if e.Type != transcript.TypeToolFinished {
			return nil
		}
		err := json.Unmarshal(e.Data, &d)
		if d.Failed && strings.Contains(d.Output, "guard") {
			d.Output = "refused"
		}
		outputs = append(outputs, d.Output)
		return err
	}))(t)
	log := must.Get(os.Open(o.Record.Join("transcript.jsonl")))(t)
	defer log.Close()
	var b strings.Builder
	must.Do(t, report.Write(&b, log))
	return outputs, b.String()
}
