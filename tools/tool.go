// Package tools owns what the model can call: Tool, the registry
// of the tools of a run, and the dispatcher that checks arguments, runs calls
// and cuts their outputs. It knows nothing of the model's wire format, of the
// transcript or of the pipeline; a tool that needs something from above takes
// it as an interface declared here.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Spec is what a model is told of a tool. Exactly one of Parameters, Grammar
// and Builtin is set: a function tool takes a JSON object by a schema, a
// freeform tool takes text by a grammar, and a built-in one is known to the
// model, so that its name is all that it is told.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments
	// Accepts is the schema that arguments are checked by, of a tool that takes more
	// than it tells the model of: what other versions of it have, or a built-in one
	// called as a function. nil means Parameters.
	Accepts json.RawMessage
	Grammar string // in Lark's notation, which constrains the input
	Builtin string // the API's own type of tool
	// Namespace is the group in which the model is told of the tool. A model has to call such a tool
	// itself; tools of one group may call each other.
	Namespace Namespace
	// Returns is the JSON Schema of what a script gets of a call; nil for a text.
	Returns json.RawMessage
}

// Namespace is a group of tools; the zero value is none.
type Namespace struct{ Name, Description string }

// Call is one call that the model made.
type Call struct {
	ID     string
	Number int    // of the call in its run, from 1: an id may come twice; 0 where nobody counts
	Caller int    // of a call that a script makes: the number of the script's own call; Number then counts within it
	Turn   int    // of the answer that it stands in, from 1; 0 where nobody counts
	Agent  string // that makes the call, and counts its own; empty for the one of the run
	Name   string
	Input  string // as the model wrote it, in the call's form
	Form   Form
	// Refused is why the call is not even looked at, in words for the model; empty
	// for none.
	Refused string
}

// Arguments reads the input, which is JSON that fits the tool's schema.
func (c Call) Arguments(into any) error {
	if err := json.Unmarshal([]byte(c.Input), into); err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	return nil
}

// MaxInput is how many bytes the input of a call may have: more than a model can
// write in an answer.
const MaxInput = 4 << 20

// Form is how a model made a call, and so how the call is answered.
type Form int

// The forms of calls. Each is answered whatever form the tool was offered in.
const (
	Function Form = iota // arguments, as a JSON object
	Freeform             // text

	// These are items of the API's own for tools that it builds in; the input is
	// what the item asks for, as a JSON object.
	Operation        // the operation of an apply_patch_call
	ShellAction      // the action of a shell_call
	LocalShellAction // the action of a local_shell_call

	// Search is a tool_search_call; the input is its arguments, as a JSON object, which
	// are checked as those of a Function are.
	Search

	// Written is a call that the runner found in the text of a model that has no tools. The input is
	// what the tool takes: text, or arguments as a JSON object.
	Written
)

// builtin says whether the call is an item of the API's own whose input has no schema here.
func (f Form) builtin() bool { return f >= Operation && f <= LocalShellAction }

// Result is what the model gets back for a call.
type Result struct {
	// Output goes to the model. The dispatcher removes secrets, makes it valid
	// UTF-8 and cuts it to its budget.
	Output string
	// Printed stands behind Output: what a command printed, of which only the
	// ends may be in memory. Output is then its header and not cut. It may be
	// nil, and is nil in what the dispatcher returns.
	Printed *Printed
	// Commands is what came of each command of a ShellAction or a
	// LocalShellAction. Output and Printed are then nothing; the dispatcher makes
	// an Output of them for whoever reads the run.
	Commands []Ran
	// Parts are texts and images that stand behind Output as items of their own. Output is then
	// their header and not cut; the dispatcher cuts their texts as one, puts the header first among
	// them, and makes Output all texts together, for whoever reads the run.
	Parts []Part
	// Object is what a script gets in the place of Output, as encoding/json decodes it into any; nil
	// for Output. A call that Failed rejects with it if it is a string. The dispatcher removes secrets from its texts, and puts what was Printed under
	// "output".
	Object any
	// Notes are the part of Output that the model is to read although a script gets Object: the
	// script's own output has them.
	Notes string
	// Images are shown to the model behind Output. Nothing is cut from them, and
	// they are not searched for secrets; Output describes them for the transcript.
	Images []Image
	// Found are the names of tools that the call found, which the model is told of now.
	Found []string
	// Failed says that the call did not do what it was asked: a refusal, bad
	// arguments, a command with a status other than 0.
	Failed bool
	// Detail is kept in the transcript beside the output: facts of the call as
	// data (exit_code, files, …). It may be nil.
	Detail map[string]any
	// Recorded says that Output is what a model got before: nothing is cut from it, and nothing of
	// a gate or of what stands aside is added again.
	Recorded bool
	// Budget is the output budget that the call asked for, in tokens; 0 means
	// the dispatcher's own, which also is the most that a call gets.
	Budget int
}

// Ran is a command that was run to its end.
type Ran struct {
	Output   string
	Printed  *Printed // behind Output, as in a Result
	ExitCode int
	TimedOut bool
	Took     time.Duration
}

// Part is a text or an image of a result.
type Part struct {
	Text  string
	Image *Image // nil for a text
}

// Image is an image file that a model can be shown: a PNG or JPEG.
type Image struct {
	MediaType string
	Data      []byte
}

// NamedImage is an image with a name that people know it by.
type NamedImage struct {
	Name string // where it comes from and where it is kept, on one line
	Image
}

// Tool is one thing that the model can call.
//
// Run gets arguments that fit the schema, as JSON without what the schema does
// not know; a freeform tool gets the text, also when the model called it as the
// function {"input": text}. What an item of the API's own asks for is handed on as
// it came, since only its tool knows what belongs there.
//
// What goes wrong in a way that the model can act on is a Result with Failed
// set; an error is for what the tool itself could not do, and the dispatcher
// turns it into a failed result as well: no tool ends a run. Run has to return soon
// after ctx has ended, having undone or finished what it began; nobody takes
// its work away from it, and a run whose tool does not return does not end.
type Tool struct {
	Spec Spec
	Run  func(ctx context.Context, call Call) (Result, error)
	// Mutates says whether a call may change the workspace or the run's state
	// by this tool's own hand; such calls run alone. Running a command does not
	// count: the reference implementation runs commands in parallel too.
	Mutates bool
	// Scripts says that its calls make others, by CallsOf. Such a call starts once the answer is
	// whole, and stands in no order with others: the calls that it makes do.
	Scripts bool
	// Foreign says that the tool is not of agent-ci: its arguments mean what its schema says
	// and nothing else, so that none is renamed or taken away, and no other name stands for it.
	Foreign bool
	// MutatesCall says of one call, which is as Run gets it, what Mutates says
	// of all; Mutates is then for calls that cannot be judged. It may be nil.
	MutatesCall func(call Call) bool
}

// Refuse is a result that tells the model why the call was not done.
func Refuse(words string) Result { return Result{Output: words, Failed: true} }
