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

// approvalNever refuses escalation in the reference implementation's words, known to models.
const approvalNever = "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never"

// publishedArguments lists arguments of published tool versions. Arguments missing from a schema are
// removed; the model is told if the argument had an effect.
var publishedArguments = map[string]struct{ silent bool }{
	"sandbox_permissions":        {silent: true}, // an escalation is answered before
	"with_escalated_permissions": {silent: true},
	"additional_permissions":     {silent: true},
	"justification":              {silent: true}, // nobody reads it, nothing is lost
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

// prepare converts the call to the tool's form, or explains why it does not fit.
func (t *callTarget) prepare() (err error) {
	defer func() { // who checks schemas was not made for those of strangers
		if value := recover(); value != nil {
			err = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	e, call := t.entry, t.Call
	if call.Form.builtin() || (call.Form == Freeform || call.Form == Written) && e.takesText() {
		t.convertedCall = call
		return nil
	}
	call.Input = unwrapped(call.Input)
	arguments, problem := e.parse(call)
	if problem == "" && !e.Foreign {
		if escalates(arguments) {
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
	call.Input, err = e.input(arguments)
	t.convertedCall = call
	return err
}

// parse parses the arguments. Text that is no JSON object becomes the tool's only required string,
// unless the model meant JSON.
func (e *entry) parse(call Call) (arguments map[string]any, problem string) {
	text := cmp.Or(strings.TrimSpace(call.Input), "{}")
	err := json.Unmarshal([]byte(text), &arguments)
	if err == nil && arguments != nil {
		_ = schema.Exactly(text, &arguments) // which was read before
		return arguments, ""
	}
	name, ok := e.schema.OnlyText()
	if meantAsText := call.Form == Freeform || e.takesText(); ok && meantAsText && !strings.HasPrefix(text, "{") {
		meant := call.Input
		if call.Form == Function { // arguments are JSON, and a text is one in JSON
			_ = json.Unmarshal([]byte(text), &meant)
		}
		return map[string]any{name: meant}, ""
	}
	if err == nil {
		return nil, "expected a JSON object, got null"
	}
	return nil, malformed(call.Input, err)
}

// unwrapped removes an extra JSON string around arguments.
func unwrapped(input string) string {
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

// input writes the arguments for the tool's Run: each name comes once, so that it reads what was checked. Only
// tools from outside get all digits of numbers.
func (e *entry) input(arguments map[string]any) (string, error) {
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

// escalates says whether the call asks for more rights than commands have.
func escalates(arguments map[string]any) bool {
	permissions, ok := arguments["sandbox_permissions"].(string)
	if ok && permissions != "" && permissions != "use_default" {
		return true
	}
	if asked, _ := arguments["with_escalated_permissions"].(bool); asked {
		return true
	}
	return arguments["additional_permissions"] != nil
}

// dropPublished removes published arguments that the tool lacks and returns the relevant ones.
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

// note tells the model about ignored arguments in a line before the output.
func note(ignored []string) string {
	if len(ignored) == 0 {
		return ""
	}
	return "Note: ignored without effect: " + strings.Join(ignored, ", ") + "\n"
}

// malformed returns the place of a JSON error in arguments.
func malformed(input string, err error) string {
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

// inputSchema is the function form of freeform tools.
var inputSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
