package tools

import (
	"context"
	"fmt"
	"sync"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Ref identifies a call within its run.
type Ref struct {
	Number, Caller int
	Agent          string
}

// Ref returns the identity of the call within its run.
func (c Call) Ref() Ref { return Ref{c.Number, c.Caller, c.Agent} }

// ScriptCalls makes the calls of one script. They are checked, run and recorded like the model's calls, and share their
// order.
type ScriptCalls struct {
	dispatcher *Dispatcher
	caller     Call
	namespace  string // namespace of the tool that runs the script
	slots      chan struct{}
	running    sync.WaitGroup
	unanswered sync.WaitGroup

	mu    sync.Mutex
	count int
}

type callsKey struct{}

// ScriptCallsOf returns the ScriptCalls in the context of a tool's Run, or nil if the tool runs no scripts. They may be
// used after Run has returned.
func ScriptCallsOf(ctx context.Context) *ScriptCalls {
	calls, _ := ctx.Value(callsKey{}).(*ScriptCalls)
	return calls
}

// withCalls returns the context for the Run of a tool. For a tool that runs scripts it contains ScriptCalls.
func (d *Dispatcher) withCalls(ctx context.Context, t callTarget) context.Context {
	if t.entry == nil || !t.entry.Scripts {
		return ctx
	}
	return context.WithValue(ctx, callsKey{}, &ScriptCalls{
		dispatcher: d, caller: t.Call, namespace: t.entry.Spec.Namespace.Name, slots: make(chan struct{}, parallelCalls),
	})
}

// Start adds a call of the script, which starts in the background as soon as it may run. Reading calls run in parallel.
// A mutating call runs alone, in the order of Start. The caller sets the call's Name, Input and Form. done gets the
// result on its own goroutine. If ctx ends first, done gets an aborted result at once.
func (c *ScriptCalls) Start(ctx context.Context, call Call, done func(Result)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	call.Number, call.Caller, call.Turn, call.Agent = c.count, c.caller.Number, c.caller.Turn, c.caller.Agent
	call.ID = fmt.Sprintf("%s.%d", c.caller.ID, c.count)
	d := c.dispatcher
	t := d.scriptTarget(call, c.namespace)
	before, ended := d.callOrder().enqueue(t.Mutates)
	refused := d.reportStart(t)
	c.unanswered.Add(1)
	c.running.Go(func() {
		defer close(ended)
		unawaited := awaitAll(ctx, before) // if ctx has ended, run only reports the call as aborted
		c.slots <- struct{}{}
		result := d.run(ctx, t, refused)
		<-c.slots
		done(result)
		c.unanswered.Done()
		awaitAll(context.Background(), unawaited) // later calls wait for this one, so earlier calls must have ended
	})
}

// awaitAll waits until all channels are closed or ctx ends. It returns the channels that it did not wait for.
func awaitAll(ctx context.Context, channels []<-chan struct{}) (unawaited []<-chan struct{}) {
	for i, channel := range channels {
		select {
		case <-channel:
		case <-ctx.Done():
			return channels[i:]
		}
	}
	return nil
}

// Answered waits until done has got the result of each started call.
func (c *ScriptCalls) Answered() { c.unanswered.Wait() }

// Wait waits until no started call blocks other calls any more.
func (c *ScriptCalls) Wait() { c.running.Wait() }

// scriptTarget counts a call by a script and returns it with its tool or a refusal. namespace is that of the tool that
// runs the script.
func (d *Dispatcher) scriptTarget(call Call, namespace string) callTarget {
	call.Refused = d.scriptRefusal(call, namespace)
	if call.Refused == "" && d.CountScriptCall != nil {
		call.Refused = d.CountScriptCall()
	}
	return d.resolveTarget(call)
}

// scriptRefusal returns the refusal of a call that scripts may not make, or "".
func (d *Dispatcher) scriptRefusal(call Call, namespace string) string {
	e := d.Registry.find(call.Name, d.Offered)
	if e == nil || !e.onlyDirect() {
		return ""
	}
	inSameNamespace := namespace != "" && e.Spec.Namespace.Name == namespace
	if inSameNamespace && !e.Scripts {
		return ""
	}
	return e.Spec.Name + dialect.NotFromScript
}

// OnlyDirect reports whether only the model may call a tool, and no script.
func (r *Registry) OnlyDirect(name string) bool {
	e := r.byName[name]
	return e != nil && e.onlyDirect()
}

// onlyDirect reports whether only the model may call the tool, and no script.
func (e *entry) onlyDirect() bool {
	return e.Scripts || e.Spec.Namespace.Name != "" || e.Spec.Name == dialect.RequestUserInput
}
