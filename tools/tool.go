// Package tools runs the calls of models. It has the type Tool, the registry of a run's tools, and the dispatcher, which
// checks arguments, runs calls and cuts outputs. It knows neither the wire format nor the transcript nor the pipeline.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Spec describes a tool for the model. Exactly one of Parameters, Grammar and Builtin is set: a
// function takes a JSON object by a schema, a freeform tool takes text by a grammar, and a built-in
// one is known by name.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments
	// Accepts is the schema for checking arguments, if it accepts more than Parameters: other
	// versions' arguments, or a built-in tool called as a function. Nil means Parameters.
	Accepts json.RawMessage
	Grammar string // in Lark's notation, which constrains the input
	Builtin string // the API's own type of tool
	// Namespace is the tool's group. The model must call such a tool itself; tools of one group may
	// call each other.
	Namespace Namespace
	// Returns is the JSON Schema of a script's result; nil means text.
	Returns json.RawMessage
}

// Namespace is a group of tools; the zero value is none.
type Namespace struct{ Name, Description string }

// Call is a call by the model.
type Call struct {
	ID     string
	Number int    // number of the call in its run, from 1, since IDs are not unique; 0 if calls are not counted
	Caller int    // for a call by a script, the number of the script's own call; Number then counts within the script
	Turn   int    // number of the answer that contains it, from 1; 0 if answers are not counted
	Agent  string // ID of the agent that makes the call, which has its own numbers; empty for the run's own agent
	Name   string
	Input  string // the input as the model wrote it, in the form of the call
	Form   Form
	// Refused tells the model why the call is refused before it is checked. It is empty otherwise.
	Refused string
}

// Arguments decodes the call's input, which must be JSON, into a value.
func (c Call) Arguments(into any) error {
	if err := json.Unmarshal([]byte(c.Input), into); err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	return nil
}

// Decoded returns a function for Tool.Run that decodes a call's arguments and passes them to do.
func Decoded[A any](do func(ctx context.Context, call Call, arguments A) (Result, error)) func(context.Context, Call) (Result, error) {
	return func(ctx context.Context, call Call) (Result, error) {
		var arguments A
		if err := call.Arguments(&arguments); err != nil {
			return Result{}, err
		}
		return do(ctx, call, arguments)
	}
}

// Milliseconds converts a number of milliseconds, which may be any number, to a duration from least to longest.
func Milliseconds(ms float64, least, longest time.Duration) time.Duration {
	switch {
	case ms <= float64(least/time.Millisecond):
		return least
	case ms >= float64(longest/time.Millisecond):
		return longest
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// Text returns the text that a call passes to a freeform tool. If the tool was called as a function, that is the
// argument input.
func (c Call) Text() (string, error) {
	if c.Form != Function {
		return c.Input, nil
	}
	var arguments struct {
		Input string `json:"input"`
	}
	err := c.Arguments(&arguments)
	return arguments.Input, err
}

// MaxInput is the maximum size of a call's input, in bytes. It is more than a model can write in one answer.
const MaxInput = 4 << 20

// Form is the form in which a model makes a call. It decides the form of the output, too.
type Form int

// The forms of calls. Each is answered whatever form the tool was offered in.
const (
	Function Form = iota // arguments, as a JSON object
	Freeform             // text

	// Operation is the operation of an apply_patch_call. This and the following forms are built-in
	// items of the API; their input is the item's request as a JSON object.
	Operation        // the operation of an apply_patch_call
	ShellAction      // the action of a shell_call
	LocalShellAction // the action of a local_shell_call

	// Search is a tool_search_call with arguments as a JSON object, checked like a Function's.
	Search

	// Written is a call found in the text of a model without tools. The input is the tool's text or
	// JSON arguments.
	Written
)

// isBuiltin reports whether the call is one of the API's own types, for which there is no schema here.
func (f Form) isBuiltin() bool { return f >= Operation && f <= LocalShellAction }

// Result is the model's answer to a call.
type Result struct {
	// Output goes to the model. The dispatcher removes secrets, makes it valid
	// UTF-8 and cuts it to its budget.
	Output string
	// Printed is a command's output behind Output, possibly only its ends. Output is then an uncut
	// header. It is nil in the dispatcher's results.
	Printed *Printed
	// Commands holds the results of a ShellAction's or LocalShellAction's commands. Output and
	// Printed are then empty; the dispatcher fills Output for readers.
	Commands []Ran
	// Parts holds texts and images behind Output as separate items. Output is then an uncut header.
	// The dispatcher cuts the texts as one, adds the header, and joins all texts in Output for
	// readers.
	Parts []Part
	// Object replaces Output for a script, decoded like encoding/json; may be nil. If it is a
	// string, a Failed call rejects with it. The dispatcher redacts it and adds Printed as
	// "output".
	Object any
	// Notes is the part of Output for the model even if a script gets Object. The script's own
	// output includes it.
	Notes string
	// Images is shown behind Output, neither cut nor redacted. Output describes them for the
	// transcript.
	Images []Image
	// Found names tools to offer from now on.
	Found []string
	// Failed reports a call that did not do its work: a refusal, bad arguments, a failed command.
	Failed bool
	// Detail is recorded in the transcript beside the output. It has facts about the call as data, such as exit_code or
	// files. It may be nil.
	Detail map[string]any
	// Recorded marks Output as given to the model before. It is neither cut nor changed again.
	Recorded bool
	// Budget is the requested output budget in tokens. 0 means the dispatcher's, which is also the
	// maximum.
	Budget int
}

// Ran is a finished command.
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

// Image is a PNG or JPEG for the model.
type Image struct {
	MediaType string
	Data      []byte
}

// NamedImage is an image with a name for people.
type NamedImage struct {
	Name string // where it comes from and where it is kept, on one line
	Image
}

// Tool is a callable tool.
//
// Run gets valid arguments as JSON without unknown ones. A freeform tool gets the text, even if
// called as the function {"input": text}. The request of an API item is passed unchanged, because
// only its tool knows it.
//
// Report problems that the model can act on as a Failed Result. An error is for failures of the
// tool itself; the dispatcher turns it into a failed result too, so no tool ends a run. Run must
// return soon after ctx has ended, with its work undone or finished. A tool that does not return
// blocks the run.
type Tool struct {
	Spec Spec
	Run  func(ctx context.Context, call Call) (Result, error)
	// Mutates means that the tool itself may change the workspace or the state of the run. Such calls run alone. Running a
	// command does not count, because the reference implementation also runs commands in parallel.
	Mutates bool
	// Scripts means that the tool makes calls itself, through ScriptCallsOf. A call of it starts when the answer is complete.
	// It has no place in the order of calls; the calls of its script have.
	Scripts bool
	// Foreign marks a tool that is not agent-ci's own. Only its schema defines its arguments: none is renamed or removed. It
	// has no alias.
	Foreign bool
	// MutatesCall overrides Mutates for a single call, which has the form that Run gets. Nil means that Mutates applies to
	// every call.
	MutatesCall func(call Call) bool
}

// Refuse returns the result of a call that is refused with these words.
func Refuse(words string) Result { return Result{Output: words, Failed: true} }
