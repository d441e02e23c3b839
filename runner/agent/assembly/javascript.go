package assembly

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/repl"
)

// javaScript is the state of js_repl for an agent.
type javaScript struct {
	repl.State
	searched bool // findNode has looked for node
}

// offeredNames returns the names of the js_repl tools to offer: none unless node was found.
func (js javaScript) offeredNames() []string {
	if !js.searched || js.Missing != "" {
		return nil
	}
	return []string{repl.Name, repl.ResetName}
}

// findNode checks whether node is installed for js_repl, once and only if the job enables js_repl.
func (a *Agent) findNode(ctx context.Context, box *sandbox.Sandbox) error {
	if !a.Job.Tools.JSRepl || a.javaScript.searched {
		return nil
	}
	err := repl.Find(ctx, a.replOptions(box, nil))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.javaScript.searched = true
	if err != nil {
		a.javaScript.Missing = outcome.WithoutFullStop(err)
		a.Record.Warn("no_node", "The model is not offered js_repl (tools.js_repl): %s.", a.javaScript.Missing)
	}
	return nil
}

// replTools returns the tools js_repl and js_repl_reset, or none if the job does not enable them. It sets box.repl,
// whose kernel starts at the first call.
func (a *Agent) replTools(box *toolbox, outputs *tools.Outputs) []tools.Tool {
	if !a.Job.Tools.JSRepl {
		return nil
	}
	box.repl = repl.New(a.replOptions(box.sandbox, outputs))
	return box.repl.Tools()
}

// replOptions returns the options of js_repl. outputs may be nil for repl.Find.
func (a *Agent) replOptions(box *sandbox.Sandbox, outputs *tools.Outputs) repl.Options {
	return repl.Options{
		Sandbox: box, Outputs: outputs, Offer: a.toolset.Patch, Dir: a.workDir(), Env: a.withHookEnv(a.Sandboxes.AgentEnv(a.Place())),
		Rules: a.Sandboxes.CommandRules(), State: &a.javaScript.State,
	}
}
