package transcript

import "github.com/agent-ci/agent-ci/tools/dialect"

// OpenCalls has a T for each call that has begun and not ended. The zero value is ready to use.
type OpenCalls[T any] struct {
	open    map[callKey][]T // oldest first; a list, because a model may use an id twice
	scripts map[CallRef]T   // calls of scripts, which may make calls
}

type callKey struct {
	id string
	CallRef
}

// Add adds a call, and returns the call whose script made it. Without such a call, it returns the zero T.
func (o *OpenCalls[T]) Add(started ToolStarted, call T) (script T) {
	if o.open == nil {
		o.open, o.scripts = map[callKey][]T{}, map[CallRef]T{}
	}
	key := callKey{started.CallID, started.Ref()}
	o.open[key] = append(o.open[key], call)
	switch {
	case started.Caller > 0:
		return o.scripts[CallRef{Number: started.Caller, Agent: started.Agent}]
	case IsScript(started.Tool):
		o.scripts[started.Ref()] = call
	}
	return script
}

// Take removes the oldest call with the id of a finished one, and returns it. If the log lacks the call's
// start, it calls begin first, which has to add the call.
func (o *OpenCalls[T]) Take(e Event, finished ToolFinished, begin func(Event, ToolStarted) T) T {
	key := callKey{finished.CallID, finished.Ref()}
	if len(o.open[key]) == 0 {
		begin(e, ToolStarted{Turn: finished.Turn, Number: finished.Number, Caller: finished.Caller, CallID: finished.CallID, Tool: finished.Tool, Agent: finished.Agent})
	}
	call := o.open[key][0]
	if o.open[key] = o.open[key][1:]; len(o.open[key]) == 0 {
		delete(o.open, key)
	}
	return call
}

// IsScript reports whether a tool's input is JavaScript that may call other tools.
func IsScript(tool string) bool { return dialect.Is(tool, dialect.Scripts) }
