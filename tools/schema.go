package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-ci/agent-ci/internal/clip"
)

// inputSchema is the function form of every tool that takes text.
var inputSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)

// schema checks arguments. It is compiled when it is first needed: most tools
// of a run are never called.
type schema struct {
	source json.RawMessage

	once     sync.Once
	root     *jsonschema.Schema
	document any // the source
	resolved *jsonschema.Resolved
	err      error
}

func (s *schema) compile() error {
	s.once.Do(func() {
		s.root = new(jsonschema.Schema)
		if s.err = json.Unmarshal(s.source, s.root); s.err != nil {
			return
		}
		if s.err = json.Unmarshal(s.source, &s.document); s.err != nil {
			return
		}
		s.resolved, s.err = s.root.Resolve(nil)
	})
	return s.err
}

// tooMany refuses arguments that cannot be checked in bounded time.
const tooMany = "the arguments are too many or nested too deep to be checked. Call it with fewer."

// check reads the arguments ever more leniently until they fit the schema. It returns what is
// still wrong with them, in words for the model, or an empty string.
func (s *schema) check(arguments map[string]any) (problem string, err error) {
	_, problem, err = s.fit(arguments)
	return problem, err
}

// fit is check. It also returns how many of the ways to read the arguments were needed.
func (s *schema) fit(arguments map[string]any) (needed int, problem string, err error) {
	if err := s.compile(); err != nil {
		return 0, "", fmt.Errorf("compile the tool's schema: %w", err)
	}
	for needed < len(leniences) {
		leniences[needed](s, arguments, false)
		needed++
		if needed > 1 && !s.affords(arguments) {
			return needed, tooMany, nil
		}
		err = s.resolved.Validate(arguments)
		if err == nil {
			return needed, "", nil
		}
	}
	return needed, s.explain(err) + ". " + s.summary(), nil
}

// leniences are the ways to read arguments, from strict to lenient. With exact, numbers are
// json.Number.
var leniences = []func(s *schema, arguments map[string]any, exact bool){
	func(s *schema, arguments map[string]any, _ bool) { s.dropNulls(arguments) },
	func(s *schema, arguments map[string]any, exact bool) { s.readTexts(arguments, exact, false) },
	func(s *schema, arguments map[string]any, exact bool) { s.readTexts(arguments, exact, true) },
}

// dropNulls takes away optional arguments that are null: models that were
// trained on strict schemas write them so.
func (s *schema) dropNulls(arguments map[string]any) {
	for name, value := range arguments {
		if value == nil && !slices.Contains(s.root.Required, name) {
			delete(arguments, name)
		}
	}
}

// readTexts reads arguments that are JSON in a string.
func (s *schema) readTexts(arguments map[string]any, exact, eager bool) {
	l := s.lenient()
	l.exact, l.eager = exact, eager
	l.read(arguments, []any{s.document})
}

// takes says whether the schema names the argument.
func (s *schema) takes(name string) bool {
	return s.compile() == nil && s.root.Properties[name] != nil
}

// onlyText names the argument when a string is all that the schema requires.
func (s *schema) onlyText() (string, bool) {
	if s.compile() != nil || len(s.root.Required) != 1 {
		return "", false
	}
	name := s.root.Required[0]
	property := s.root.Properties[name]
	return name, property != nil && property.Type == "string"
}

// summary lists the arguments with their types.
func (s *schema) summary() string {
	names := slices.Sorted(maps.Keys(s.root.Properties))
	if len(names) == 0 {
		return "It names no arguments."
	}
	l := s.lenient()
	for i, name := range names {
		kind := kindOf(l, s.root.Properties[name], name)
		if slices.Contains(s.root.Required, name) {
			kind += ", required"
		}
		names[i] = fmt.Sprintf("%s (%s)", name, kind)
	}
	return "The arguments are: " + strings.Join(names, ", ") + "."
}

// kindOf says in words of which types the values of a property are.
func kindOf(l *lenient, s *jsonschema.Schema, name string) string {
	switch {
	case s == nil: // null, which some write for anything
	case s.Type != "":
		return s.Type
	case len(s.Enum) > 0:
		return "one of " + clipped(valuesOf(s.Enum))
	case s.Const != nil:
		return clipped(valuesOf([]any{*s.Const}))
	}
	root, _ := l.root.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	return cmp.Or(l.takes(properties[name]).String(), "no value")
}

// valuesOf are JSON values with commas between.
func valuesOf(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		if raw, err := json.Marshal(value); err == nil {
			texts[i] = string(raw)
		}
	}
	return strings.Join(texts, ", ")
}

// The library says where and what in one line per level:
//
//	validating root: validating /properties/n: type: 1 has type "string", want "number"
var (
	schemaPlace      = regexp.MustCompile(`^validating (\S+): `)
	typeProblem      = regexp.MustCompile(`(?s)^type: (.*) has type "(\w+)", want (?:one of )?"([^"]+)"$`)
	enumProblem      = regexp.MustCompile(`(?s)^enum: (.*) does not equal any of: \[(.*)\]$`)
	missingProblem   = regexp.MustCompile(`^required: missing properties: \[(.*)\]$`)
	needlessProblem  = regexp.MustCompile(`^unexpected additional properties \[(.*)\]$`)
	schemaPathPieces = strings.NewReplacer("/properties/", ".", "/items", "[]")
)

// explain names the field, what was expected and what came.
func (s *schema) explain(err error) string {
	problem, place := err.Error(), ""
	for {
		found := schemaPlace.FindStringSubmatch(problem)
		if found == nil {
			break
		}
		place, problem = found[1], problem[len(found[0]):]
	}
	field := strings.TrimPrefix(schemaPathPieces.Replace(place), ".")
	if field == "root" || field == "" {
		field = "the arguments"
	}
	return fmt.Sprintf("%s: %s", field, s.reworded(problem, place))
}

// choices are problems of which the library prints schemas that have no words.
var choices = []struct{ problem, words string }{
	{"anyOf: did not validate", "none of the schema's alternatives (anyOf)"},
	{"oneOf: did not validate", "none of the schema's alternatives (oneOf)"},
	{"oneOf: validated against both", "several of the schema's alternatives, and has to fit one (oneOf)"},
	{"not: validated against", "what the schema excludes (not)"},
}

// reworded is a problem in the words that models get, at a place of the schema.
func (s *schema) reworded(problem, place string) string {
	if m := typeProblem.FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("expected %s, got %s %s", m[3], m[2], clipped(m[1]))
	}
	if m := enumProblem.FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("expected one of %s, got %q", clipped(s.valuesAt(place, "enum", m[2])), clipped(m[1]))
	}
	if rest, is := strings.CutPrefix(problem, "const: "); is {
		got, _, _ := strings.Cut(rest, " does not equal ")
		return fmt.Sprintf("expected %s, got %q", clipped(s.valuesAt(place, "const", "another value")), clipped(got))
	}
	for _, choice := range choices {
		if strings.HasPrefix(problem, choice.problem) {
			return "it fits " + choice.words
		}
	}
	if m := missingProblem.FindStringSubmatch(problem); m != nil {
		return "expected " + m[1] + ", got nothing by that name"
	}
	if m := needlessProblem.FindStringSubmatch(problem); m != nil {
		return "got " + m[1] + ", which this tool does not take"
	}
	return clipped(problem)
}

// valuesAt are the values that a keyword gives at a place of the schema, or other words.
func (s *schema) valuesAt(place, keyword, other string) string {
	at, _ := Referred(s.document, "#"+strings.TrimPrefix(place, "root"))
	node, _ := at.(map[string]any)
	value, there := node[keyword]
	if !there {
		return other
	}
	if list, ok := value.([]any); ok && keyword == "enum" {
		return valuesOf(list)
	}
	return valuesOf([]any{value})
}

func clipped(text string) string { return clip.Bytes(text, 200) }

// malformed says where arguments stop being JSON.
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

// CheckSchema says what is wrong with the JSON Schema of a tool's arguments.
func CheckSchema(source json.RawMessage) error {
	s := schema{source: source}
	return s.compile()
}
