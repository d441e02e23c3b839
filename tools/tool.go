// Package tools owns what the model can call: the Tool interface, the registry
// of the tools of a run, and the dispatcher that checks arguments, runs calls
// and cuts their outputs. It knows nothing of the model's wire format, of the
// transcript or of the pipeline; a tool that needs something from above takes
// it as an interface declared here.
package tools

import (
	"context"
	"encoding/json"
)

// Spec is what a model is told of a tool. Exactly one of Parameters and
// Grammar is set: a function tool takes a JSON object by a schema, a freeform
// tool takes text by a grammar.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments
	Strict      bool            // the API's strict mode; the schema must allow it
	Grammar     *Grammar
}

// Grammar constrains the input of a freeform tool.
type Grammar struct {
	Syntax     string // "lark" or "regex"
	Definition string
}

// Call is one call that the model made.
type Call struct {
	ID       string
	Name     string
	Input    string // the arguments as the model wrote them: JSON, or text of a freeform call
	Freeform bool   // the call came as text, not as JSON
}

// Result is what the model gets back for a call.
type Result struct {
	// Output goes to the model; the dispatcher has cut it to its budget.
	Output string
	// Failed says that the call did not do what it was asked: a refusal, bad
	// arguments, a command with a status other than 0.
	Failed bool
	// Detail is kept in the transcript beside the output: facts of the call as
	// data (exit_code, files, …). It may be nil.
	Detail map[string]any
	// Budget is the output budget that the call asked for, in tokens; 0 means
	// the dispatcher's own.
	Budget int
}

// Tool is one thing that the model can call.
//
// Run gets arguments that fit the schema (freeform tools: the text). What goes
// wrong in a way that the model can act on is a Result with Failed set; an
// error is for what the tool itself could not do, and the dispatcher turns it
// into a failed result as well: no tool ends a run.
type Tool interface {
	Spec() Spec
	// Mutates says whether a call may change the workspace by this tool's own
	// hand; such calls run alone. Running a command does not count: the
	// reference implementation runs commands in parallel too.
	Mutates() bool
	Run(ctx context.Context, call Call) (Result, error)
}
