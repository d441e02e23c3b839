package repl

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
)

// The names of the tools.
const (
	Name      = "js_repl"
	ResetName = "js_repl_reset"
)

// Options configure a Repl.
type Options struct {
	Sandbox *sandbox.Sandbox
	Outputs *tools.Outputs
	Offer   tools.Form      // form of the tool that the model is offered: Function, or Freeform for any other value
	Dir     string          // the working directory, absolute
	Env     []string        // the complete environment
	Rules   policy.Commands // decides whether a kernel may start, as for a command
	// State is shared with earlier and later Repls of the agent.
	State *State
}

// State is what an agent knows of node and of its kernels.
type State struct {
	Missing string // why Find found no usable node, or ""
	Used    bool   // a kernel has run code
}

// Repl runs a model's JavaScript. The first call starts the kernel, a Node process. Close stops it.
type Repl struct {
	options          Options
	interruptedCalls sync.WaitGroup // interrupted calls by the code that still block later calls

	mu     sync.Mutex
	kernel *kernel // nil if none runs
	lost   bool    // definitions of earlier calls are lost, and the model does not know yet
	cells  int     // number of cells run so far
}

// New returns a Repl. It starts nothing.
func New(o Options) *Repl { return &Repl{options: o, lost: o.State.Used} }

const (
	specBegin    = "Runs JavaScript in a persistent Node kernel with top-level await."
	specFreeform = " This is a freeform tool: send raw JavaScript source text, optionally with a first-line pragma like `// codex-js-repl: timeout_ms=15000`; do not send JSON/quotes/markdown fences."
	specEnd      = "\n" +
		"Top-level bindings are kept between calls and may be declared again. What the code prints is the output, then the value of its last expression unless that is undefined. " +
		"require and import() work, with paths relative to the working directory. Helpers, also as properties of codex:\n" +
		"- await tool(name, args): calls another tool, args an object, or a string for a freeform tool like apply_patch; gives its result, throws where it was refused or failed\n" +
		"- await sh(command, {workdir}): runs a shell command; gives {stdout, stderr, exitCode}; stdout has both, in the order of writing\n" +
		"- await emitImage(pathOrBytesOrDataURL): shows you an image\n" +
		"- tmpDir: a folder for files that are not part of the work\n" +
		"A call may take 30 seconds, unless its first line says otherwise: `// codex-js-repl: timeout_ms=60000`."
)

// spec returns the definition of js_repl: a function with the code as its argument, or a freeform tool.
func spec(offer tools.Form) tools.Spec {
	if offer != tools.Function {
		return tools.Spec{Name: Name, Description: specBegin + specFreeform + specEnd, Grammar: grammar}
	}
	return tools.Spec{
		Name: Name, Description: specBegin + specEnd,
		Parameters: json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","description":"JavaScript source text."}},"required":["input"],"additionalProperties":false}`),
	}
}

var resetSpec = tools.Spec{
	Name:        ResetName,
	Description: "Restarts the js_repl kernel for this run and clears persisted top-level bindings.",
	Parameters:  json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
}

// Tools returns js_repl and js_repl_reset. Code in the kernel cannot call them.
func (r *Repl) Tools() []tools.Tool {
	return []tools.Tool{
		{Spec: spec(r.options.Offer), Scripts: true, Run: r.call},
		{Spec: resetSpec, Scripts: true, Run: r.reset},
	}
}

// reset runs js_repl_reset: it stops the kernel.
func (r *Repl) reset(context.Context, tools.Call) (tools.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	return tools.Result{Output: "The kernel was ended. The next call of js_repl starts a new one, without bindings."}, nil
}

// call runs js_repl: it runs the code in the kernel. Calls run one after the other.
func (r *Repl) call(ctx context.Context, call tools.Call) (tools.Result, error) {
	code, err := call.Text()
	if err != nil {
		return tools.Result{}, err
	}
	c, refusal := parseCell(code)
	if refusal != "" {
		return tools.Refuse(refusal), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.reset {
		r.stop()
	}
	remark, problem := r.ensureKernel()
	if problem != "" {
		return tools.Refuse(problem), nil
	}
	r.cells++
	r.options.State.Used = true
	c.number, c.callID = r.cells, call.ID
	result, unusable, err := r.kernel.run(ctx, c, r.options.Outputs)
	r.interruptedCalls.Go(tools.ScriptCallsOf(ctx).Wait)
	result.Output = remark + result.Output
	if unusable {
		r.stop() // this result tells the model
	}
	return result, err
}

// ensureKernel starts a kernel if none runs. remark tells the model what has changed since its last call, problem why no
// kernel can run. Both may be "".
func (r *Repl) ensureKernel() (remark, problem string) {
	if r.kernel != nil && r.kernel.Exited() {
		remark = fmt.Sprintf("The kernel %s after the last call.\n", r.kernel.describeEnd())
		r.stop()
		r.lost = true
	}
	if r.kernel == nil {
		if words := r.options.whyNoKernel(); words != "" {
			return "", words
		}
		k, err := start(r.options)
		if err != nil {
			return "", fmt.Sprintf("js_repl failed: no kernel can be started: %v", err)
		}
		r.kernel = k
	}
	if r.lost {
		remark += "A new kernel was started: what earlier calls defined is gone.\n"
		r.lost = false
	}
	return remark, ""
}

// stop stops the kernel, if there is one, and waits for its end. The next call tells the model nothing of lost
// definitions; to change that, set r.lost.
func (r *Repl) stop() {
	if r.kernel != nil {
		r.kernel.stop()
	}
	r.kernel, r.lost = nil, false
}

// Close stops the kernel. No call may be in progress, not even one by a script.
func (r *Repl) Close() {
	r.interruptedCalls.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}
