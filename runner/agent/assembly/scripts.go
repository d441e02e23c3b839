package assembly

import (
	"context"
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
		State: &a.scriptState,
	})
	registry, err := a.newRegistry(append(box.scripts.All(), all...), external)
	if err != nil {
		return nil, err
	}
	inScripts := slices.DeleteFunc(slices.Clone(offered), registry.OnlyDirect)
	var nested []code.Nested
	for _, spec := range a.withHookDescriptions(registry.Specs(inScripts)) {
		nested = append(nested, code.Nested{Spec: spec, Deferred: slices.Contains(external.deferred, spec.Name)})
	}
	box.scripts.Offer(nested)
	return a.newRegistry(append(box.scripts.All(), all...), external) // again, since the description of exec lists the nested tools
}

// endScripts stops running scripts.
func (a *Agent) endScripts() {
	if a.toolbox.scripts == nil {
		return
	}
	if running := a.toolbox.scripts.Close(); running > 0 {
		a.Record.Warn("scripts_ended", "The agent ended while %d of its scripts still ran; they were stopped with their calls. Look for half-done work in the change.", running)
	}
}
