package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/google/jsonschema-go/jsonschema"
)

// anyObject takes all arguments.
var anyObject = json.RawMessage(`{"type":"object"}`)

// Checkable returns the part of a foreign tool's JSON Schema that agent-ci can check arguments by, and
// names the rest. An unknown schema language must not refuse valid calls. Unchecked is empty if
// everything is checked.
func Checkable(raw json.RawMessage) (checkable json.RawMessage, unchecked string) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "true" {
		return anyObject, ""
	}
	problem := checkSchema(raw)
	if problem == nil {
		return compact(raw), ""
	}
	rest, dropped := withoutUncheckable(raw)
	if rest != nil && checkSchema(rest) == nil {
		return rest, "arguments are not checked by " + strings.Join(dropped, ", ")
	}
	return anyObject, "arguments are not checked: " + clip.Visible(problem.Error(), 200)
}

// compact removes spaces from JSON.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// checkSchema returns why a schema cannot be used to check arguments.
func checkSchema(raw json.RawMessage) error {
	s := Schema{source: raw}
	if err := s.compile(); err != nil {
		return err
	}
	if kindsOf(s.document) != kindObject {
		return errors.New("it is no object")
	}
	b := checkCost{root: s.document, known: map[[2]uintptr]int{}}
	nothing, problem := map[string]any{}, error(nil)
	walkSchema(s.document, func(node map[string]any) {
		for _, keyword := range unsupportedReferences(s.document, node) {
			problem = cmp.Or(problem, fmt.Errorf("it has %s %v", keyword, node[keyword]))
		}
		b.add(node, nothing)
	})
	switch {
	case problem != nil:
		return problem
	case b.endless:
		return errors.New("it refers to itself without end")
	case b.add(s.document, nothing) > maxApplied:
		return fmt.Errorf("it takes more than %d steps to check even no arguments", maxApplied)
	}
	// The library detects unknown versions only when it validates.
	if err := s.resolved.Validate(nothing); err != nil && strings.HasPrefix(err.Error(), "cannot validate version") {
		return err
	}
	return nil
}

// unsupportedReferences returns a schema's keywords that need full support for references.
func unsupportedReferences(root any, node map[string]any) (keywords []string) {
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef", "$id"} {
		isRootID := keyword == "$id" && pointerOf(node) == pointerOf(root)
		if _, exists := node[keyword]; exists && !isRootID {
			keywords = append(keywords, keyword)
		}
	}
	if reference, exists := node["$ref"]; exists {
		text, _ := reference.(string)
		if _, ok := ResolveReference(root, text); !ok {
			keywords = append(keywords, "$ref")
		}
	}
	return keywords
}

// withoutUncheckable returns a schema without the parts that cannot be checked, and their names. It returns
// nil if impossible.
func withoutUncheckable(raw json.RawMessage) (json.RawMessage, []string) {
	var root any
	if json.Unmarshal(raw, &root) != nil {
		return nil, nil
	}
	dropped := map[string]bool{}
	drop := func(node map[string]any, keyword string) {
		delete(node, keyword)
		dropped[keyword] = true
	}
	walkSchema(root, func(node map[string]any) {
		delete(node, "$schema")
		for _, keyword := range unsupportedReferences(root, node) {
			drop(node, keyword)
		}
		for keyword, value := range node {
			if !canRead(keyword, value) {
				drop(node, keyword)
			}
		}
	})
	if len(dropped) == 0 {
		dropped["$schema"] = true
	}
	rest, err := json.Marshal(root)
	if err != nil {
		return nil, nil
	}
	names := make([]string, 0, len(dropped))
	for name := range dropped {
		names = append(names, clip.Visible(name, 40))
	}
	slices.Sort(names)
	return rest, names
}

// canRead says whether a keyword can be read here, alone.
func canRead(keyword string, value any) bool {
	switch keyword {
	case "pattern":
		text, ok := value.(string)
		return ok && isRegexp(text)
	case "patternProperties":
		patterns, ok := value.(map[string]any)
		for pattern := range patterns {
			ok = ok && isRegexp(pattern)
		}
		return ok
	}
	if _, holdsSchemas := schemaKeywords[keyword]; holdsSchemas {
		return true
	}
	raw, err := json.Marshal(map[string]any{keyword: value})
	return err == nil && json.Unmarshal(raw, new(jsonschema.Schema)) == nil
}

func isRegexp(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

const (
	// maxChecks is how often schemas are applied to values for one call.
	maxChecks = 1_000_000
	// maxApplied is how often schemas may be applied to no arguments at all. A server can list
	// thousands of tools, and all of their schemas are tried when it starts.
	maxApplied = 10_000
)

// checkIsBounded reports whether a value can be checked in bounded time: schemas that refer to each other
// can multiply the work with each level of the value.
func checkIsBounded(root, value any) bool {
	b := checkCost{root: root, known: map[[2]uintptr]int{}}
	return b.add(root, value) <= maxChecks && b.steps <= maxChecks && !b.endless
}

// checkCost counts how often schemas are applied to values, each pair of them once.
type checkCost struct {
	root    any
	known   map[[2]uintptr]int
	steps   int  // behind maxChecks nothing is counted
	endless bool // a schema applies itself to the same value
}

// add returns the number of checks that a schema needs for a value, at most maxChecks+1. While a pair is
// being counted, its known number is 0; meeting it again then means that the schema has no end.
func (b *checkCost) add(at, value any) int {
	node, ok := at.(map[string]any)
	b.steps++
	if !ok || b.steps > maxChecks {
		return 1
	}
	const counting = 0
	pair := [2]uintptr{pointerOf(node), pointerOf(value)}
	if n, known := b.known[pair]; known {
		b.endless = b.endless || n == counting
		return n
	}
	b.known[pair] = counting
	n := 1
	add := func(sub, value any) { n = min(n+b.add(sub, value), maxChecks+1) }
	for _, sub := range b.applied(node, samePlace) {
		add(sub.schema, value)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, sub := range b.applied(node, property) {
			if sub.keyword == "properties" {
				if v, exists := value[sub.name]; exists {
					add(sub.schema, v)
				}
				continue
			}
			for _, v := range value {
				add(sub.schema, v)
			}
		}
	case []any:
		for _, sub := range b.applied(node, element) {
			for _, v := range value {
				add(sub.schema, v)
			}
		}
	}
	b.known[pair] = n
	return n
}

// applied returns what appliedTo does, and counts the subschemas as steps.
func (b *checkCost) applied(node map[string]any, at place) []subschema {
	subs := appliedTo(b.root, node, at)
	b.steps += len(subs)
	return subs
}
