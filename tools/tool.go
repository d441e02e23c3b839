// Package tools owns the model's calls: Tool, the registry of a run's tools, and the dispatcher
// that checks arguments, runs calls and cuts outputs. It knows neither wire format nor transcript
// nor pipeline. Tools get such services as interfaces declared here.
package tools

import (
	"bytes"
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

// Arguments decodes the input, valid JSON for the tool's schema.
func (c Call) Arguments(into any) error {
	if err := json.Unmarshal([]byte(c.Input), into); err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	return nil
}

// Decoded returns a Run that decodes the arguments of calls for do.
func Decoded[A any](do func(ctx context.Context, call Call, arguments A) (Result, error)) func(context.Context, Call) (Result, error) {
	return func(ctx context.Context, call Call) (Result, error) {
		var arguments A
		if err := call.Arguments(&arguments); err != nil {
			return Result{}, err
		}
		return do(ctx, call, arguments)
	}
}

// Milliseconds converts a call's number of milliseconds, whatever it is, to a time within bounds.
func Milliseconds(ms float64, least, most time.Duration) time.Duration {
	switch {
	case ms <= float64(least/time.Millisecond):
		return least
	case ms >= float64(most/time.Millisecond):
		return most
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// Text returns the input of a freeform tool. It is an argument if the tool is offered as a function: the
// dispatcher passes a freeform tool's text for every form.
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

// JSON returns a value as JSON in one line, with <, > and & as they are.
func JSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
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

// builtin reports whether the input has no schema here.
func (f Form) builtin() bool { return f >= Operation && f <= LocalShellAction }

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
	// Detail is kept in the transcript beside the output: facts of the call as
	// data (exit_code, files, …). It may be nil.
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
	// Mutates says whether a call may change the workspace or the run's state
	// by this tool's own hand; such calls run alone. Running a command does not
	// count: the reference implementation runs commands in parallel too.
	Mutates bool
	// Scripts permits calls through ScriptCallsOf. Such a call starts after the answer is complete. The
	// order of calls ignores it; its own calls do.
	Scripts bool
	// Foreign marks a tool from outside. Its schema alone defines its arguments: none is renamed or
	// removed, and it has no alias.
	Foreign bool
	// MutatesCall judges a single call in Run's form. Mutates then only applies where no call can
	// be judged. Nil means that Mutates applies to every call.
	MutatesCall func(call Call) bool
}

// Refuse returns a refusal for the model.
func Refuse(words string) Result { return Result{Output: words, Failed: true} }
