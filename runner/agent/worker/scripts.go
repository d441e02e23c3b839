package worker

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// scriptTools are the tools by which a model runs scripts.
var scriptTools = []string{dialect.Exec, dialect.Wait}

// scriptRegistry returns the registry for a model that calls tools in scripts, and sets box.scripts. Scripts can call
// the offered tools, except those that only the model itself can call.
func (a *Agent) scriptRegistry(ctx context.Context, box *toolbox, outputs *tools.Outputs, all []tools.Tool, offered []string, external externalTools) (*tools.Registry, error) {
	for _, name := range a.Job.Tools.Deny {
		if slices.Contains(scriptTools, name) {
			return nil, outcome.Stopf(outcome.InvalidInput, "unknown_tool",
				"tools.deny has %s, which %s needs to call any tool (model.tools: code); deny single tools instead, or set model.tools: freeform.", name, a.Job.Model.Name)
		}
	}
	box.scripts = code.New(ctx, code.Options{
		Sandbox: box.sandbox, Outputs: outputs, Program: a.ScriptEngine,
		Cells: a.scriptState.cells, Stored: a.scriptState.stored,
	})
	registry, err := a.registry(append(box.scripts.All(), all...), external)
	if err != nil {
		return nil, err
	}
	inScripts := slices.DeleteFunc(slices.Clone(offered), registry.OnlyDirect)
	var nested []code.Nested
	for _, spec := range a.withHookDescriptions(registry.Specs(inScripts)) {
		nested = append(nested, code.Nested{Spec: spec, Deferred: slices.Contains(external.deferred, spec.Name)})
	}
	box.scripts.Offer(nested)
	return a.registry(append(box.scripts.All(), all...), external) // again, since the description of exec lists the nested tools
}

// scriptState is the state of scripts that is kept when the run resumes or the agent starts another attempt.
type scriptState struct {
	cells  int               // number of scripts so far
	stored map[string]string // values that scripts stored, as JSON
}

// store adds the stored values in the recorded detail of a call that ran a script.
func (s *scriptState) store(detail json.RawMessage) error {
	var recorded struct{ Stored map[string]string }
	err := json.Unmarshal(detail, &recorded)
	if s.stored == nil {
		s.stored = map[string]string{}
	}
	maps.Copy(s.stored, recorded.Stored)
	return err
}

// endScripts stops running scripts and saves their state for the next attempt.
func (a *Agent) endScripts() {
	scripts := a.toolbox.scripts
	if scripts == nil {
		return
	}
	running := scripts.Running()
	scripts.Close()
	a.scriptState.cells, a.scriptState.stored = scripts.State()
	if running > 0 {
		a.Record.Warn("scripts_ended", "The agent ended while %d of its scripts still ran; they were stopped with their calls. Look for half-done work in the change.", running)
	}
}
