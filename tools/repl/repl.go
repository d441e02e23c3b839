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

// Options describes the kernel's place and services.
type Options struct {
	Sandbox *sandbox.Sandbox
	Outputs *tools.Outputs
	Offer   tools.Form // form of the tool that the model is offered: Function, or Freeform for any other value
	Dir     string     // the working directory, absolute
	Env     []string   // all of the environment
	// Judge decides whether a kernel may start, as for a command. Nil allows it.
	Judge func(policy.Request) policy.Decision
	// Missing is why Find found no usable node, or "".
	Missing string
	// Used reports that an earlier kernel, which is lost, has run code.
	Used bool
}

// Repl has at most one kernel, started by the first call. Close ends it.
type Repl struct {
	options          Options
	interruptedCalls sync.WaitGroup // interrupted calls of the code for which later calls still wait

	mu     sync.Mutex
	kernel *kernel // nil if none runs
	lost   bool    // definitions of earlier calls are gone, and the model does not know yet
	cells  int     // number of cells that were run
}

// New makes a Repl. Nothing is started.
func New(o Options) *Repl { return &Repl{options: o, lost: o.Used} }

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

// spec describes a freeform tool, or a function with the code as its argument.
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

// Tools are js_repl and js_repl_reset. Neither can be called from code of the other.
func (r *Repl) Tools() []tools.Tool {
	return []tools.Tool{
		{Spec: spec(r.options.Offer), Scripts: true, Run: r.call},
		{Spec: resetSpec, Scripts: true, Run: r.reset},
	}
}

// reset ends the kernel.
func (r *Repl) reset(context.Context, tools.Call) (tools.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop(false)
	return tools.Result{Output: "The kernel was ended. The next call of js_repl starts a new one, without bindings."}, nil
}

// call runs the code of a call in the kernel, one call after the other.
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
		r.stop(false)
	}
	remark, problem := r.ensureKernel()
	if problem != "" {
		return tools.Refuse(problem), nil
	}
	r.cells++
	c.number, c.callID = r.cells, call.ID
	result, unusable, err := r.kernel.run(ctx, c, r.options.Outputs)
	r.interruptedCalls.Go(tools.ScriptCallsOf(ctx).Wait)
	result.Output = remark + result.Output
	if unusable {
		r.stop(false) // this result tells the model
	}
	return result, err
}

// ensureKernel starts a kernel if needed. before is a remark for the model, problem the reason of a
// failure.
func (r *Repl) ensureKernel() (before, problem string) {
	if r.kernel != nil && r.kernel.Exited() {
		before = fmt.Sprintf("The kernel %s after the last call.\n", r.kernel.describeEnd())
		r.stop(true)
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
		before += "A new kernel was started: what earlier calls defined is gone.\n"
		r.lost = false
	}
	return before, ""
}

// stop ends the kernel, if any, and waits. If lost, the model is told of its lost definitions later.
func (r *Repl) stop(lost bool) {
	if r.kernel != nil {
		r.kernel.stop()
	}
	r.kernel, r.lost = nil, lost
}

// Used reports whether the model has called this Repl or an earlier one.
func (r *Repl) Used() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.options.Used || r.cells > 0
}

// Close ends the kernel. No call may be in progress, not even by a script.
func (r *Repl) Close() {
	r.interruptedCalls.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop(false)
}
