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

// Ref is which call of the run this is.
func (c Call) Ref() Ref { return Ref{c.Number, c.Caller, c.Agent} }

// Calls makes the calls of one script. They are checked, judged, run and recorded as those that
// the model makes itself, in one order with them.
type Calls struct {
	dispatcher *Dispatcher
	caller     Call
	group      string // the namespace of the tool that is called
	slots      chan struct{}
	running    sync.WaitGroup
	unanswered sync.WaitGroup

	mu   sync.Mutex
	made int
}

type callsKey struct{}

// CallsOf is by what a tool with Scripts makes the calls of a script, in Run and after it; nil for
// any other tool.
func CallsOf(ctx context.Context) *Calls {
	calls, _ := ctx.Value(callsKey{}).(*Calls)
	return calls
}

// withCalls is ctx for the Run of a call that may make others.
func (d *Dispatcher) withCalls(ctx context.Context, t target) context.Context {
	if t.entry == nil || !t.entry.Scripts {
		return ctx
	}
	return context.WithValue(ctx, callsKey{}, &Calls{
		dispatcher: d, caller: t.Call, group: t.entry.Spec.Namespace.Name, slots: make(chan struct{}, parallelCalls),
	})
}

// Start starts a call as soon as it may, and does not wait: calls that only read run side by side,
// one that mutates alone, in the order of Start. Name, Input and Form of the call are the
// caller's. done gets the result, once, from a goroutine of its own; after ctx has ended, at once,
// that of a call that was broken off.
func (c *Calls) Start(ctx context.Context, call Call, done func(Result)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	call.Number, call.Caller, call.Turn, call.Agent = c.made, c.caller.Number, c.caller.Turn, c.caller.Agent
	call.ID = fmt.Sprintf("%s.%d", c.caller.ID, c.made)
	d := c.dispatcher
	t := d.nested(call, c.group)
	before, ended := d.line().enter(t.Mutates)
	refused := d.started(t)
	c.unanswered.Add(1)
	c.running.Go(func() {
		defer close(ended)
		left := upTo(ctx, before)
		c.slots <- struct{}{}
		result := d.run(ctx, t, refused)
		<-c.slots
		done(result)
		c.unanswered.Done()
		upTo(context.Background(), left) // those behind it still wait for those before it
	})
}

// upTo waits until all are closed, or ctx ends, and returns those that it has not seen closed.
func upTo(ctx context.Context, all []<-chan struct{}) (left []<-chan struct{}) {
	for i, one := range all {
		select {
		case <-one:
		case <-ctx.Done():
			return all[i:]
		}
	}
	return nil
}

// Answered waits for the results of the calls that were started.
func (c *Calls) Answered() { c.unanswered.Wait() }

// Wait waits for the calls that were started, until none keeps others waiting either.
func (c *Calls) Wait() { c.running.Wait() }

// nested is the target of a call that one of a tool of group makes.
func (d *Dispatcher) nested(call Call, group string) target {
	call.Refused = d.whyNotNested(call, group)
	if call.Refused == "" && d.Nested != nil {
		call.Refused = d.Nested()
	}
	return d.target(call)
}

// whyNotNested refuses calls that a script can't make.
func (d *Dispatcher) whyNotNested(call Call, group string) string {
	e := d.Registry.find(call.Name, d.Offered)
	if e == nil || !e.onlyDirect() || !e.Scripts && group != "" && e.Spec.Namespace.Name == group {
		return ""
	}
	return e.Spec.Name + NotFromScript
}

// NotFromScript ends the words that refuse a call which a script can't make, and which counts for
// nothing.
const NotFromScript = " cannot be called from a script. Call it yourself."

// Direct says whether only the model itself may call the tool of that name, and no script.
func (r *Registry) Direct(name string) bool {
	e := r.byName[name]
	return e != nil && e.onlyDirect()
}

func (e *entry) onlyDirect() bool {
	return e.Scripts || e.Spec.Namespace.Name != "" || e.Spec.Name == dialect.RequestUserInput
}
