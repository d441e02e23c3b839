package agent

import (
	"encoding/json"
	"slices"

	"github.com/agent-ci/agent-ci/tools"
)

// The types of the items of a program, which the API runs. Calls that the program makes name it by
// its call_id, and so do their outputs; the program's own output is its end.
const (
	programType       = "program"
	programOutputType = "program_output"
)

// caller says who makes a call: the model, or a program.
type caller struct {
	Type string `json:"type"`
	ID   string `json:"caller_id,omitempty"`
}

// callerOf is who made a call, for its output; nil for the model.
func callerOf(call tools.Call) *caller {
	if call.Program == "" {
		return nil
	}
	return &caller{programType, call.Program}
}

// programmatic is the tool by which a model has the API run programs.
var programmatic = definition{Type: "programmatic_tool_calling"}

// byPrograms says whether programs may call one of the tools.
func byPrograms(specs []tools.Spec) bool {
	return slices.ContainsFunc(specs, func(spec tools.Spec) bool { return spec.Programs })
}

// withoutCallers are the API's own tools that say nothing of who may call them.
var withoutCallers = []string{"local_shell", "tool_search"}

// callersOf are who may call a tool; nil where a request does not say it: the model alone.
func callersOf(spec tools.Spec) []string {
	if !spec.Programs || slices.Contains(withoutCallers, spec.Builtin) {
		return nil
	}
	return []string{"direct", "programmatic"}
}

// refusedWords are what a run that offers programs says besides of a request that is refused.
const refusedWords = "model.programmatic is on, which not every model and endpoint knows; leave it out if this one does not. Else "

// program is the call_id of the program that an item is, or belongs to; empty for none.
func (k itemKind) program() string {
	switch {
	case k.Type == programType, k.Type == programOutputType:
		return k.CallID
	case k.Caller != nil && k.Caller.Type == programType:
		return k.Caller.ID
	}
	return ""
}

// running are the programs among items that have not come to their end. The API runs one anew with
// the outputs of its calls, so that all of it stays as it is until then.
func running(items []json.RawMessage) map[string]bool {
	programs := map[string]bool{}
	for _, item := range items {
		switch kind := kindOf(item); kind.Type {
		case programType:
			programs[kind.CallID] = true
		case programOutputType:
			delete(programs, kind.CallID)
		}
	}
	return programs
}

// beforeRunning is how many of the oldest items may be left out: those before the first of a
// program that runs, and before the thoughts that led to it.
func beforeRunning(items []json.RawMessage) int {
	programs := running(items)
	first := slices.IndexFunc(items, func(item json.RawMessage) bool { return programs[kindOf(item).program()] })
	if first < 0 {
		return len(items)
	}
	for first > 0 && kindOf(items[first-1]).Type == "reasoning" {
		first--
	}
	return first
}

// withPrograms leaves out what belongs to a program that is not there, and ends of such.
func withPrograms(items []json.RawMessage) []json.RawMessage {
	there := map[string]bool{}
	kept := make([]json.RawMessage, 0, len(items))
	for _, item := range items {
		kind := kindOf(item)
		if kind.Type == programType {
			there[kind.CallID] = true
		}
		if program := kind.program(); program == "" || there[program] {
			kept = append(kept, item)
		}
	}
	return kept
}
