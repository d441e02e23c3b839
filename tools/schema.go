package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// inputSchema is the function form of every tool that takes text.
var inputSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)

// schema checks arguments. It is compiled when it is first needed: most tools
// of a run are never called.
type schema struct {
	source json.RawMessage

	once     sync.Once
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	err      error
}

func (s *schema) compile() error {
	s.once.Do(func() {
		s.root = new(jsonschema.Schema)
		if s.err = json.Unmarshal(s.source, s.root); s.err != nil {
			return
		}
		s.resolved, s.err = s.root.Resolve(nil)
	})
	return s.err
}

// check returns what is wrong with the arguments, in words for the model, or
// an empty string.
func (s *schema) check(arguments map[string]any) (string, error) {
	if err := s.compile(); err != nil {
		return "", fmt.Errorf("compile the tool's schema: %w", err)
	}
	s.dropNulls(arguments)
	s.readTexts(arguments)
	if err := s.resolved.Validate(arguments); err != nil {
		return explain(err) + ". " + s.summary(), nil
	}
	return "", nil
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

// readTexts reads arguments that are JSON in a string where the schema wants what
// that JSON is: some models write all values as text.
func (s *schema) readTexts(arguments map[string]any) {
	for name, value := range arguments {
		text, isText := value.(string)
		property := s.root.Properties[name]
		if !isText || property == nil {
			continue
		}
		var read any
		if json.Unmarshal([]byte(text), &read) == nil && isOf(read, property.Type) {
			arguments[name] = read
		}
	}
}

// isOf says whether a value is of a JSON type other than a string.
func isOf(value any, kind string) bool {
	switch value.(type) {
	case float64:
		return kind == "number" || kind == "integer"
	case bool:
		return kind == "boolean"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
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
	for i, name := range names {
		kind := s.root.Properties[name].Type
		if slices.Contains(s.root.Required, name) {
			kind += ", required"
		}
		names[i] = fmt.Sprintf("%s (%s)", name, kind)
	}
	return "The arguments are: " + strings.Join(names, ", ") + "."
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
func explain(err error) string {
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
	return fmt.Sprintf("%s: %s", field, reworded(problem))
}

func reworded(problem string) string {
	if m := typeProblem.FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("expected %s, got %s %s", m[3], m[2], clipped(m[1]))
	}
	if m := enumProblem.FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("expected one of %s, got %q", strings.Join(strings.Fields(m[2]), ", "), clipped(m[1]))
	}
	if m := missingProblem.FindStringSubmatch(problem); m != nil {
		return "expected " + m[1] + ", got nothing by that name"
	}
	if m := needlessProblem.FindStringSubmatch(problem); m != nil {
		return "got " + m[1] + ", which this tool does not take"
	}
	return clipped(problem)
}

func clipped(text string) string {
	const longest = 200
	if len(text) <= longest {
		return text
	}
	return firstBytes(text, longest) + "…"
}

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
		at, line, column, lastBytes(input[:at], 40), err)
}

// CheckSchema says what is wrong with the JSON Schema of a tool's arguments.
func CheckSchema(source json.RawMessage) error {
	s := schema{source: source}
	return s.compile()
}
