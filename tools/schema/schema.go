// Package schema checks and repairs the arguments of calls by JSON Schemas, with the help of a library. It also converts
// the schemas of external tools to a form that can be checked, and to one for models.
package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Schema checks the arguments of a tool. It is compiled at its first use, because most tools of a run are never called.
type Schema struct {
	compile func() error // parses the schema once, and returns an error if it is invalid

	root     *jsonschema.Schema
	document any // the source
	resolved *jsonschema.Resolved
}

// New returns a schema that is compiled at its first use.
func New(source json.RawMessage) *Schema {
	s := &Schema{root: new(jsonschema.Schema)}
	s.compile = sync.OnceValue(func() (err error) {
		if err := json.Unmarshal(source, &s.document); err != nil {
			return err
		}
		if isDeeper(s.document, maxNesting) { // the library's time grows with the square of the depth
			return fmt.Errorf("it is nested more than %d levels deep", maxNesting)
		}
		if err := json.Unmarshal(source, s.root); err != nil {
			return err
		}
		s.resolved, err = s.root.Resolve(nil)
		return err
	})
	return s
}

// maxNesting is the maximum number of objects and lists around a value of a schema.
const maxNesting = 200

// isDeeper reports whether a value of JSON has more than levels objects and lists inside each other.
func isDeeper(value any, levels int) bool {
	inner := func(v any) bool { return isDeeper(v, levels-1) }
	switch value := value.(type) {
	case map[string]any:
		return levels == 0 || slices.ContainsFunc(slices.Collect(maps.Values(value)), inner)
	case []any:
		return levels == 0 || slices.ContainsFunc(value, inner)
	}
	return false
}

// tooMany tells the model that its arguments cannot be checked in bounded time.
const tooMany = "the arguments are too many or nested too deep to be checked. Call it with fewer."

// Check repairs the arguments until they fit the schema. problem tells the model what is wrong if no repair helps, or is
// "". Numbers in arguments must be json.Number.
func (s *Schema) Check(arguments map[string]any) (problem string, err error) {
	if err := s.compile(); err != nil {
		return "", fmt.Errorf("compile the tool's schema: %w", err)
	}
	for repaired := 0; ; repaired++ {
		value := Plain(arguments)
		if !checkIsBounded(s.document, value) {
			return tooMany, nil
		}
		err := s.resolved.Validate(value)
		switch {
		case err == nil:
			return "", nil
		case repaired == len(repairs):
			return s.explain(err) + ". " + s.describeArguments(), nil
		}
		repairs[repaired](s, arguments)
	}
}

// Takes reports whether the schema has an argument called name.
func (s *Schema) Takes(name string) bool {
	return s.compile() == nil && s.root.Properties[name] != nil
}

// OnlyText returns the name of the only required argument. exists is false unless there is exactly one, and it is a
// string.
func (s *Schema) OnlyText() (name string, exists bool) {
	if s.compile() != nil || len(s.root.Required) != 1 {
		return "", false
	}
	name = s.root.Required[0]
	property := s.root.Properties[name]
	return name, property != nil && property.Type == "string"
}

// describeArguments returns a sentence that lists the arguments with their types for the model.
func (s *Schema) describeArguments() string {
	names := slices.Sorted(maps.Keys(s.root.Properties))
	if len(names) == 0 {
		return "It names no arguments."
	}
	parser := s.newTextParser()
	for i, name := range names {
		kind := describeType(parser, s.root.Properties[name], name)
		if slices.Contains(s.root.Required, name) {
			kind += ", required"
		}
		names[i] = fmt.Sprintf("%s (%s)", name, kind)
	}
	return "The arguments are: " + strings.Join(names, ", ") + "."
}

// describeType describes the types that the property called name accepts.
func describeType(parser *textParser, s *jsonschema.Schema, name string) string {
	switch {
	case s == nil: // null, which some write for anything
	case s.Type != "":
		return s.Type
	case len(s.Enum) > 0:
		return "one of " + shorten(joinJSON(s.Enum))
	case s.Const != nil:
		return shorten(joinJSON([]any{*s.Const}))
	}
	root, _ := parser.root.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	return cmp.Or(parser.acceptedKinds(properties[name]).String(), "no value")
}

// joinJSON returns values as JSON, separated by commas.
func joinJSON(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		if raw, err := json.Marshal(value); err == nil {
			texts[i] = string(raw)
		}
	}
	return strings.Join(texts, ", ")
}

// The library reports place and problem in one line, with a prefix per level:
//
//	validating root: validating /properties/n: type: 1 has type "string", want "number"
var (
	schemaPlace       = lazyregexp.New(`^validating (\S+): `)
	typeProblem       = lazyregexp.New(`(?s)^type: (.*) has type "(\w+)", want (?:one of )?"([^"]+)"$`)
	enumProblem       = lazyregexp.New(`(?s)^enum: (.*) does not equal any of: \[(.*)\]$`)
	missingProblem    = lazyregexp.New(`^required: missing properties: \[(.*)\]$`)
	unexpectedProblem = lazyregexp.New(`^unexpected additional properties \[(.*)\]$`)
	schemaPathPieces  = strings.NewReplacer("/properties/", ".", "/items", "[]")
)

// quotedName matches a name in the list of an unexpectedProblem.
var quotedName = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)

// explain describes a validation error to the model: the field, the expected value and the given value.
func (s *Schema) explain(err error) string {
	problem, place := err.Error(), ""
	for {
		found := schemaPlace().FindStringSubmatch(problem)
		if found == nil {
			break
		}
		place, problem = found[1], problem[len(found[0]):]
	}
	field := strings.TrimPrefix(schemaPathPieces.Replace(place), ".")
	if field == "root" || field == "" {
		field = "the arguments"
	}
	return fmt.Sprintf("%s: %s", field, s.reword(problem, place))
}

// compositionProblems rewords problems with schemas in the library's text.
var compositionProblems = []struct{ problem, words string }{
	{"anyOf: did not validate", "none of the schema's alternatives (anyOf)"},
	{"oneOf: did not validate", "none of the schema's alternatives (oneOf)"},
	{"oneOf: validated against both", "several of the schema's alternatives, and has to fit one (oneOf)"},
	{"not: validated against", "what the schema excludes (not)"},
}

// reword translates a problem in the library's words to words for models. place is the path of the schema that does not
// fit.
func (s *Schema) reword(problem, place string) string {
	if m := typeProblem().FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("expected %s, got %s %s", m[3], m[2], shorten(m[1]))
	}
	if m := enumProblem().FindStringSubmatch(problem); m != nil {
		return fmt.Sprintf("expected one of %s, got %q", shorten(s.valuesAt(place, "enum", m[2])), shorten(m[1]))
	}
	if rest, isConst := strings.CutPrefix(problem, "const: "); isConst {
		got, _, _ := strings.Cut(rest, " does not equal ")
		return fmt.Sprintf("expected %s, got %q", shorten(s.valuesAt(place, "const", "another value")), shorten(got))
	}
	for _, choice := range compositionProblems {
		if strings.HasPrefix(problem, choice.problem) {
			return "it fits " + choice.words
		}
	}
	if m := missingProblem().FindStringSubmatch(problem); m != nil {
		return "expected " + m[1] + ", got nothing by that name"
	}
	if m := unexpectedProblem().FindStringSubmatch(problem); m != nil {
		names := quotedName().FindAllString(m[1], -1)
		slices.Sort(names) // the library lists them in the order of a map
		return "got " + strings.Join(names, " ") + ", which this tool does not take"
	}
	return shorten(problem)
}

// valuesAt returns the values of a keyword in the schema at place, as JSON. A missing keyword gives other.
func (s *Schema) valuesAt(place, keyword, other string) string {
	at, _ := ResolveReference(s.document, "#"+strings.TrimPrefix(place, "root"))
	node, _ := at.(map[string]any)
	value, exists := node[keyword]
	if !exists {
		return other
	}
	if list, isList := value.([]any); isList && keyword == "enum" {
		return joinJSON(list)
	}
	return joinJSON([]any{value})
}

func shorten(text string) string { return clip.Bytes(text, 200) }

// Usable returns an error if source is no valid JSON Schema.
func Usable(source json.RawMessage) error { return New(source).compile() }
