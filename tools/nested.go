package tools

import (
	"context"
	"fmt"
	"sync"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Ref tells a call from the others of its run.
type Ref struct {
	Number, Caller int
	Agent          string
}

// Ref identifies the call.
func (c Call) Ref() Ref { return Ref{c.Number, c.Caller, c.Agent} }

// ScriptCalls makes the calls of one script. They are checked, judged, run and recorded like the model's,
// in the same order.
type ScriptCalls struct {
	dispatcher *Dispatcher
	caller     Call
	group      string // the namespace of the tool that is called
	slots      chan struct{}
	running    sync.WaitGroup
	unanswered sync.WaitGroup

	mu    sync.Mutex
	count int
}

type callsKey struct{}

// ScriptCallsOf returns the Calls of a tool with Scripts, during and after Run, or nil.
func ScriptCallsOf(ctx context.Context) *ScriptCalls {
	calls, _ := ctx.Value(callsKey{}).(*ScriptCalls)
	return calls
}

// withCalls returns the context for Run of a script.
func (d *Dispatcher) withCalls(ctx context.Context, t callTarget) context.Context {
	if t.entry == nil || !t.entry.Scripts {
		return ctx
	}
	return context.WithValue(ctx, callsKey{}, &ScriptCalls{
		dispatcher: d, caller: t.Call, group: t.entry.Spec.Namespace.Name, slots: make(chan struct{}, parallelCalls),
	})
}

// Start starts a call when permitted, without waiting: reading calls in parallel, a mutating one
// alone, in order of Start. The caller sets Name, Input and Form. done receives the result once, on
// its own goroutine; after the end of ctx, at once and as aborted.
func (c *ScriptCalls) Start(ctx context.Context, call Call, done func(Result)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	call.Number, call.Caller, call.Turn, call.Agent = c.count, c.caller.Number, c.caller.Turn, c.caller.Agent
	call.ID = fmt.Sprintf("%s.%d", c.caller.ID, c.count)
	d := c.dispatcher
	t := d.nested(call, c.group)
	before, ended := d.callOrder().enqueue(t.Mutates)
	refused := d.started(t)
	c.unanswered.Add(1)
	c.running.Go(func() {
		defer close(ended)
		left := awaitAll(ctx, before)
		c.slots <- struct{}{}
		result := d.run(ctx, t, refused)
		<-c.slots
		done(result)
		c.unanswered.Done()
		awaitAll(context.Background(), left) // those behind it still wait for those before it
	})
}

// awaitAll waits until all are closed or ctx ends, and returns the rest.
func awaitAll(ctx context.Context, all []<-chan struct{}) (left []<-chan struct{}) {
	for i, one := range all {
		select {
		case <-one:
		case <-ctx.Done():
			return all[i:]
		}
	}
	return nil
}

// Answered waits for the results of started calls.
func (c *ScriptCalls) Answered() { c.unanswered.Wait() }

// Wait waits until no started call blocks others.
func (c *ScriptCalls) Wait() { c.running.Wait() }

// nested returns the target of a call by a tool of group.
func (d *Dispatcher) nested(call Call, group string) callTarget {
	call.Refused = d.whyNotNested(call, group)
	if call.Refused == "" && d.CountScriptCall != nil {
		call.Refused = d.CountScriptCall()
	}
	return d.target(call)
}

// whyNotNested refuses calls not permitted in scripts.
func (d *Dispatcher) whyNotNested(call Call, group string) string {
	e := d.Registry.find(call.Name, d.Offered)
	if e == nil || !e.onlyDirect() || !e.Scripts && group != "" && e.Spec.Namespace.Name == group {
		return ""
	}
	return e.Spec.Name + dialect.NotFromScript
}

// OnlyDirect reports whether only the model, and no script, may call a tool.
func (r *Registry) OnlyDirect(name string) bool {
	e := r.byName[name]
	return e != nil && e.onlyDirect()
}

func (e *entry) onlyDirect() bool {
	return e.Scripts || e.Spec.Namespace.Name != "" || e.Spec.Name == dialect.RequestUserInput
}
