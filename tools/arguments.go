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
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// approvalNever refuses a request for more rights, in the words of the reference implementation, which models know.
const approvalNever = "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never"

// publishedArguments lists arguments that published versions of the tools have. A call's argument of this list is
// removed if the tool does not have it here. The model gets a note about that unless it is silent.
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

// convert checks the call's input and sets convertedCall, the call in the form that the tool's Run gets, or refusal. It
// returns an error if the check itself failed.
func (t *callTarget) convert() (err error) {
	defer func() { // the schema package may panic on an external tool's schema
		if value := recover(); value != nil {
			err = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	e, converted := t.entry, t.Call
	isText := t.Call.Form == Freeform || t.Call.Form == Written
	if t.Call.Form.isBuiltin() || isText && e.takesText() {
		t.convertedCall = t.Call
		return nil
	}
	converted.Input = unwrapJSONString(t.Call.Input)
	arguments, problem := e.parseArguments(converted)
	if problem != "" {
		t.refusal = t.Tool + ": " + problem
		return nil
	}
	if !e.Foreign {
		if asksForPermissions(arguments) {
			t.refusal = approvalNever + ". Run it again without asking for permissions."
			return nil
		}
		convertArguments(t.Tool, withoutNamespace(t.Call.Name), arguments)
		t.ignored = e.dropPublished(arguments)
	}
	problem, err = e.schema.Check(arguments)
	if problem != "" || err != nil {
		t.refusal = t.Tool + ": " + problem
		return err
	}
	converted.Form = Function
	if e.takesText() {
		converted.Form = Freeform
	}
	converted.Input, err = e.inputForRun(arguments)
	t.convertedCall = converted
	return err
}

// parseArguments parses the arguments of a call. If the input is plain text and the tool has a single text argument, the
// text becomes that argument. problem says what is wrong with the arguments, or is "".
func (e *entry) parseArguments(call Call) (arguments map[string]any, problem string) {
	text := cmp.Or(strings.TrimSpace(call.Input), "{}")
	err := json.Unmarshal([]byte(text), &arguments)
	if err == nil && arguments != nil {
		_ = schema.Exactly(text, &arguments) // cannot fail after Unmarshal succeeded
		return arguments, ""
	}
	name, hasOnlyText := e.schema.OnlyText()
	mayBeText := call.Form == Freeform || e.takesText()
	looksLikeJSON := strings.HasPrefix(text, "{")
	if hasOnlyText && mayBeText && !looksLikeJSON {
		value := call.Input
		if call.Form == Function { // its arguments are JSON, so the text is a JSON string
			_ = json.Unmarshal([]byte(text), &value)
		}
		return map[string]any{name: value}, ""
	}
	if err == nil {
		return nil, "expected a JSON object, got null"
	}
	return nil, describeJSONError(call.Input, err)
}

// unwrapJSONString returns the JSON object in an input that some models encode a second time, as a JSON string. It
// returns other inputs unchanged.
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

// inputForRun returns the input for the tool's Run. It encodes the checked arguments again, so that a duplicate key
// cannot smuggle in another value. Only external tools get all digits of numbers.
func (e *entry) inputForRun(arguments map[string]any) (string, error) {
	if e.takesText() {
		return arguments["input"].(string), nil // inputSchema has checked it
	}
	if !e.Foreign {
		arguments = schema.Plain(arguments).(map[string]any)
	}
	text, err := plainjson.Marshal(arguments) // people and hooks read it, too
	if err != nil {
		return "", fmt.Errorf("write arguments: %w", err)
	}
	return string(text), nil
}

// asksForPermissions reports whether a call asks for more rights than commands have.
func asksForPermissions(arguments map[string]any) bool {
	permissions, _ := arguments["sandbox_permissions"].(string)
	escalated, _ := arguments["with_escalated_permissions"].(bool)
	isDefault := permissions == "" || permissions == "use_default"
	return !isDefault || escalated || arguments["additional_permissions"] != nil
}

// dropPublished removes the arguments of publishedArguments that the tool does not have. It returns the names to report
// to the model.
func (e *entry) dropPublished(arguments map[string]any) (ignored []string) {
	for name := range arguments {
		published, isPublished := publishedArguments[name]
		if !isPublished || e.schema.Takes(name) {
			continue
		}
		delete(arguments, name)
		if !published.silent {
			ignored = append(ignored, name)
		}
	}
	slices.Sort(ignored)
	return ignored
}

// ignoredNote returns a line that tells the model about ignored arguments, or "" if there are none.
func ignoredNote(ignored []string) string {
	if len(ignored) == 0 {
		return ""
	}
	return "Note: ignored without effect: " + strings.Join(ignored, ", ") + "\n"
}

// describeJSONError describes a JSON error in a call's input and its position.
func describeJSONError(input string, err error) string {
	if typeError, isType := errors.AsType[*json.UnmarshalTypeError](err); isType {
		return fmt.Sprintf("expected a JSON object, got %s", typeError.Value)
	}
	at := int64(len(input))
	if syntaxError, isSyntax := errors.AsType[*json.SyntaxError](err); isSyntax {
		at = syntaxError.Offset
	}
	at = min(max(at, 0), int64(len(input)))
	line := 1 + strings.Count(input[:at], "\n")
	column := at - int64(strings.LastIndexByte(input[:at], '\n')+1)
	return fmt.Sprintf("not valid JSON at byte %d (line %d, column %d), after %q: %v",
		at, line, column, clip.End(input[:at], 40), err)
}

// inputSchema is the schema of a freeform tool that is called as a function.
var inputSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
