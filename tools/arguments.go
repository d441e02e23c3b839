package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// approvalNever refuses a request for more rights, in the words of the reference implementation, which models know.
const approvalNever = "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never"

// publishedArguments lists arguments that published versions of the tools have. If a tool here does not have one, it is
// removed from the call. The model gets a note about it unless it is silent.
var publishedArguments = map[string]struct{ silent bool }{
	"sandbox_permissions":        {silent: true}, // asksForPermissions has refused the call already if it matters
	"with_escalated_permissions": {silent: true},
	"additional_permissions":     {silent: true},
	"justification":              {silent: true}, // has no effect anyway
	"description":                {silent: true},
	"prefix_rule":                {},
	"environment_id":             {},
	"login":                      {},
	"timeout":                    {},
	"timeout_ms":                 {},
	"run_in_background":          {},
	"output_mode":                {},
	"multiline":                  {},
	"context":                    {},
	"-A":                         {},
	"-B":                         {},
	"-C":                         {},
	"-n":                         {},
	"ignore":                     {},
	"merge":                      {},
}

// convert converts the call to the form that the tool takes, or sets refusal. An error means that the check itself
// failed.
func (t *callTarget) convert() (err error) {
	defer func() { // the schema package may panic on an external tool's schema
		if value := recover(); value != nil {
			err = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	e, call := t.entry, t.Call
	if call.Form.builtin() || (call.Form == Freeform || call.Form == Written) && e.takesText() {
		t.convertedCall = call
		return nil
	}
	call.Input = unwrapJSONString(call.Input)
	arguments, problem := e.parseArguments(call)
	if problem == "" && !e.Foreign {
		if asksForPermissions(arguments) {
			t.refusal = approvalNever + ". Run it again without asking for permissions."
			return nil
		}
		translate(t.Tool, withoutNamespace(call.Name), arguments)
		t.ignored = e.dropPublished(arguments)
	}
	if problem == "" {
		problem, err = e.schema.Check(arguments)
	}
	if problem != "" || err != nil {
		t.refusal = t.Tool + ": " + problem
		return err
	}
	call.Form = Function
	if e.takesText() {
		call.Form = Freeform
	}
	call.Input, err = e.inputForRun(arguments)
	t.convertedCall = call
	return err
}

// parseArguments parses the arguments of a call. If the text is no JSON object and the tool has a single text argument, the text
// becomes that argument, unless it looks like broken JSON. problem says what is wrong with the arguments.
func (e *entry) parseArguments(call Call) (arguments map[string]any, problem string) {
	text := cmp.Or(strings.TrimSpace(call.Input), "{}")
	err := json.Unmarshal([]byte(text), &arguments)
	if err == nil && arguments != nil {
		_ = schema.Exactly(text, &arguments) // cannot fail after Unmarshal succeeded
		return arguments, ""
	}
	name, ok := e.schema.OnlyText()
	if meantAsText := call.Form == Freeform || e.takesText(); ok && meantAsText && !strings.HasPrefix(text, "{") {
		meant := call.Input
		if call.Form == Function { // its arguments are JSON, so the text is a JSON string
			_ = json.Unmarshal([]byte(text), &meant)
		}
		return map[string]any{name: meant}, ""
	}
	if err == nil {
		return nil, "expected a JSON object, got null"
	}
	return nil, describeJSONError(call.Input, err)
}

// unwrapJSONString returns the arguments without the extra JSON string that some models wrap around them.
func unwrapJSONString(input string) string {
	var inner string
	if !strings.HasPrefix(strings.TrimSpace(input), `"`) || json.Unmarshal([]byte(input), &inner) != nil {
		return input
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(inner), &object) != nil || object == nil {
		return input
	}
	return inner
}

// inputForRun returns the input for the tool's Run. It is written anew from the checked arguments, so that a duplicate key
// cannot smuggle in another value. Only external tools get all digits of numbers.
func (e *entry) inputForRun(arguments map[string]any) (string, error) {
	if e.takesText() {
		return arguments["input"].(string), nil // inputSchema has checked it
	}
	if !e.Foreign {
		arguments = schema.Plain(arguments).(map[string]any)
	}
	text, err := JSON(arguments) // people and hooks read it, too
	if err != nil {
		return "", fmt.Errorf("write arguments: %w", err)
	}
	return string(text), nil
}

// asksForPermissions reports whether a call asks for more rights than commands have.
func asksForPermissions(arguments map[string]any) bool {
	permissions, ok := arguments["sandbox_permissions"].(string)
	if ok && permissions != "" && permissions != "use_default" {
		return true
	}
	if asked, _ := arguments["with_escalated_permissions"].(bool); asked {
		return true
	}
	return arguments["additional_permissions"] != nil
}

// dropPublished removes the published arguments that the tool does not have. It returns those to tell the model about.
func (e *entry) dropPublished(arguments map[string]any) []string {
	var ignored []string
	for name := range arguments {
		extra, known := publishedArguments[name]
		if !known || e.schema.Takes(name) {
			continue
		}
		delete(arguments, name)
		if !extra.silent {
			ignored = append(ignored, name)
		}
	}
	slices.Sort(ignored)
	return ignored
}

// ignoredNote tells the model about ignored arguments in a line before the output.
func ignoredNote(ignored []string) string {
	if len(ignored) == 0 {
		return ""
	}
	return "Note: ignored without effect: " + strings.Join(ignored, ", ") + "\n"
}

// describeJSONError describes a JSON error in arguments and where it is.
func describeJSONError(input string, err error) string {
	at := int64(len(input))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("expected a JSON object, got %s", kind.Value)
	}
	at = min(max(at, 0), int64(len(input)))
	line := 1 + strings.Count(input[:at], "\n")
	column := at - int64(strings.LastIndexByte(input[:at], '\n')+1)
	return fmt.Sprintf("not valid JSON at byte %d (line %d, column %d), after %q: %v",
		at, line, column, clip.End(input[:at], 40), err)
}

// inputSchema is the schema of a freeform tool that is called as a function.
var inputSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
