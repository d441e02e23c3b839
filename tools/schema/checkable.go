package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/google/jsonschema-go/jsonschema"
)

// anyObject takes all arguments.
var anyObject = json.RawMessage(`{"type":"object"}`)

// Checkable returns the part of a foreign tool's JSON Schema that agent-ci can check arguments by. unchecked
// describes the other part, or is "". So no valid call is refused because agent-ci does not know a keyword.
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

// compact returns JSON without spaces between its parts, or invalid JSON unchanged.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// checkSchema returns an error if a schema cannot be used to check arguments.
func checkSchema(raw json.RawMessage) error {
	s := New(raw)
	if err := s.compile(); err != nil {
		return err
	}
	if kindsOf(s.document) != kindObject {
		return errors.New("it is no object")
	}
	cost := checkCost{root: s.document, known: map[[2]uintptr]int{}}
	noArguments := map[string]any{}
	var problem error // the first one
	walkSchema(s.document, func(node map[string]any) {
		for _, keyword := range unsupportedReferences(s.document, node) {
			problem = cmp.Or(problem, fmt.Errorf("it has %s %v", keyword, node[keyword]))
		}
		cost.add(node, noArguments)
	})
	switch {
	case problem != nil:
		return problem
	case cost.endless:
		return errors.New("it refers to itself without end")
	case cost.add(s.document, noArguments) > maxApplied:
		return fmt.Errorf("it takes more than %d steps to check even no arguments", maxApplied)
	}
	// The library detects unknown versions only when it validates.
	if err := s.resolved.Validate(noArguments); err != nil && strings.HasPrefix(err.Error(), "cannot validate version") {
		return err
	}
	return nil
}

// unsupportedReferences returns the keywords of the schema node that refer to other schemas in a way that agent-ci does
// not support. root is the document that contains node.
func unsupportedReferences(root any, node map[string]any) (keywords []string) {
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef", "$id"} {
		isRootID := keyword == "$id" && pointerOf(node) == pointerOf(root)
		if _, exists := node[keyword]; exists && !isRootID {
			keywords = append(keywords, keyword)
		}
	}
	if _, found := targetOf(root, node); !found {
		keywords = append(keywords, "$ref")
	}
	return keywords
}

// withoutUncheckable returns a schema without the keywords that agent-ci cannot check, and the names of these. It returns
// nil if raw is no JSON.
func withoutUncheckable(raw json.RawMessage) (checkable json.RawMessage, droppedKeywords []string) {
	var root any
	if json.Unmarshal(raw, &root) != nil {
		return nil, nil
	}
	dropped := map[string]bool{} // set of keywords
	walkSchema(root, func(node map[string]any) {
		delete(node, "$schema")
		unsupported := unsupportedReferences(root, node)
		for keyword, value := range node {
			if slices.Contains(unsupported, keyword) || !canRead(keyword, value) {
				delete(node, keyword)
				dropped[clip.Visible(keyword, 40)] = true
			}
		}
	})
	if len(dropped) == 0 { // only $schema was deleted, so it was the problem
		dropped["$schema"] = true
	}
	rest, err := json.Marshal(root)
	if err != nil {
		return nil, nil
	}
	return rest, slices.Sorted(maps.Keys(dropped))
}

// canRead reports whether agent-ci can parse a keyword with this value. For a keyword whose value contains schemas, it
// returns true, since these are looked at separately.
func canRead(keyword string, value any) bool {
	switch keyword {
	case "pattern":
		text, isText := value.(string)
		return isText && isRegexp(text)
	case "patternProperties":
		patterns, isValid := value.(map[string]any)
		for pattern := range patterns {
			isValid = isValid && isRegexp(pattern)
		}
		return isValid
	}
	if _, holdsSchemas := schemaKeywords[keyword]; holdsSchemas {
		return true
	}
	raw, err := json.Marshal(map[string]any{keyword: value})
	return err == nil && json.Unmarshal(raw, new(jsonschema.Schema)) == nil
}

// isRegexp reports whether a pattern is a valid Go regular expression.
func isRegexp(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

const (
	// maxChecks limits how often schemas are applied to values in the check of one call.
	maxChecks = 1_000_000
	// maxApplied limits how often schemas are applied in a check of no arguments. A server can list
	// thousands of tools, and all of their schemas are tried when it starts.
	maxApplied = 10_000
)

// checkIsBounded reports whether a value can be checked against the schema root in at most maxChecks steps. Schemas that
// refer to each other can multiply the work with each level of the value.
func checkIsBounded(root, value any) bool {
	cost := checkCost{root: root, known: map[[2]uintptr]int{}}
	return cost.add(root, value) <= maxChecks && cost.steps <= maxChecks && !cost.endless
}

// checkCost counts how often schemas are applied to values in a check. It visits each pair of schema and value once.
type checkCost struct {
	root    any
	known   map[[2]uintptr]int // number of checks for pairs of the addresses of a schema and a value
	steps   int                // number of steps of the counting itself, which ends after maxChecks
	endless bool               // a schema applies itself to the same value
}

// add returns the number of checks that a schema needs for a value, but at most maxChecks+1. It sets endless if a schema
// leads to itself for the same value.
func (b *checkCost) add(schema, value any) int {
	node, isObject := schema.(map[string]any)
	b.steps++
	if !isObject || b.steps > maxChecks {
		return 1
	}
	const counting = 0 // the known number of a pair while it is being counted
	pair := [2]uintptr{pointerOf(node), pointerOf(value)}
	if n, known := b.known[pair]; known {
		b.endless = b.endless || n == counting
		return n
	}
	b.known[pair] = counting
	n := 1
	addSub := func(sub, value any) { n = min(n+b.add(sub, value), maxChecks+1) }
	for _, sub := range b.appliedSubschemas(node, samePlace) {
		addSub(sub.schema, value)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, sub := range b.appliedSubschemas(node, property) {
			if sub.keyword == "properties" {
				if v, exists := value[sub.name]; exists {
					addSub(sub.schema, v)
				}
				continue
			}
			for _, v := range value {
				addSub(sub.schema, v)
			}
		}
	case []any:
		for _, sub := range b.appliedSubschemas(node, element) {
			for _, v := range value {
				addSub(sub.schema, v)
			}
		}
	}
	b.known[pair] = n
	return n
}

// appliedSubschemas returns the subschemas that node applies to values at a place, and counts them as steps.
func (b *checkCost) appliedSubschemas(node map[string]any, at place) []subschema {
	subs := appliedTo(b.root, node, at)
	b.steps += len(subs)
	return subs
}
