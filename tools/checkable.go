package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// anyObject takes all arguments.
var anyObject = json.RawMessage(`{"type":"object"}`)

// mostApplied is how often schemas may be applied to no arguments at all. A server can list
// thousands of tools, and all of their schemas are tried when it starts.
const mostApplied = 10_000

// CheckableSchema makes of the JSON Schema of somebody's tool one that arguments can be checked by
// here, and says what of it they are not checked by: a schema in a language that is not known
// here must not refuse calls that are right. Unchecked is empty where all is checked.
func CheckableSchema(raw json.RawMessage) (checkable json.RawMessage, unchecked string) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "true" {
		return anyObject, ""
	}
	first := checkSchema(raw)
	if first == nil {
		return compact(raw), ""
	}
	loose, dropped := loosened(raw)
	if loose != nil && checkSchema(loose) == nil {
		return loose, "arguments are not checked by " + strings.Join(dropped, ", ")
	}
	return anyObject, "arguments are not checked: " + Visible(first.Error(), 200)
}

// compact is JSON without spaces: where a schema was kept changes nothing of it.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// checkSchema says why a schema cannot be used to check arguments.
func checkSchema(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	if _, ok := root.(map[string]any); !ok {
		return errors.New("it is no object")
	}
	err := walkSchema(root, func(node map[string]any, isRoot bool) error {
		for _, keyword := range unfollowed(root, node, isRoot) {
			return fmt.Errorf("it has %s %v", keyword, node[keyword])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if loops(root) {
		return errors.New("it refers to itself without end")
	}
	s := schema{source: raw}
	if err := s.compile(); err != nil {
		return err
	}
	if nothing := map[string]any{}; !affords(root, nothing, mostApplied) {
		return fmt.Errorf("it takes more than %d steps to check even no arguments", mostApplied)
	}
	// The library says only when it validates which versions it does not know.
	if err := s.resolved.Validate(map[string]any{}); err != nil && strings.HasPrefix(err.Error(), "cannot validate version") {
		return err
	}
	return nil
}

// unfollowed returns the keywords of one schema that only a full implementation of references can follow.
func unfollowed(root any, node map[string]any, isRoot bool) (keywords []string) {
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef", "$id"} {
		if _, there := node[keyword]; there && !(isRoot && keyword == "$id") {
			keywords = append(keywords, keyword)
		}
	}
	if reference, there := node["$ref"]; there {
		text, _ := reference.(string)
		if _, ok := Referred(root, text); !ok {
			keywords = append(keywords, "$ref")
		}
	}
	return keywords
}

// walkSchema visits each schema in a schema, the root first.
func walkSchema(root any, visit func(node map[string]any, isRoot bool) error) error {
	var walk func(any, bool) error
	walk = func(at any, isRoot bool) error {
		node, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		if err := visit(node, isRoot); err != nil {
			return err
		}
		for _, sub := range subschemas(node) {
			if err := walk(sub.schema, false); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, true)
}

// identity tells a map or list from all others.
func identity(value any) uintptr {
	switch value.(type) {
	case map[string]any, []any:
		return reflect.ValueOf(value).Pointer()
	}
	return 0
}

// loops says whether a schema applies itself to the same value again, which would be checked
// without end.
func loops(root any) bool {
	const (
		open = iota + 1
		done
	)
	state := map[uintptr]int{}
	var visit func(any) bool
	visit = func(at any) bool {
		node, ok := at.(map[string]any)
		if !ok {
			return false
		}
		switch state[identity(node)] {
		case open:
			return true
		case done:
			return false
		}
		state[identity(node)] = open
		for _, sub := range appliedTo(root, node, samePlace) {
			if visit(sub.schema) {
				return true
			}
		}
		state[identity(node)] = done
		return false
	}
	found := false
	_ = walkSchema(root, func(node map[string]any, _ bool) error {
		found = found || visit(node)
		return nil
	})
	return found
}

// appliedTo are the schemas that a schema applies at a place, those that it refers to included.
func appliedTo(root any, node map[string]any, at place) []subschema {
	subs := slices.DeleteFunc(subschemas(node), func(s subschema) bool { return s.at != at })
	if text, ok := node["$ref"].(string); ok && at == samePlace {
		if to, ok := Referred(root, text); ok {
			subs = append(subs, subschema{at: samePlace, schema: to})
		}
	}
	return subs
}

// loosened is a schema without what cannot be checked by here, and the names of that; nil for one
// that cannot be loosened.
func loosened(raw json.RawMessage) (json.RawMessage, []string) {
	var root any
	if json.Unmarshal(raw, &root) != nil {
		return nil, nil
	}
	dropped := map[string]bool{}
	drop := func(node map[string]any, keyword string) {
		delete(node, keyword)
		dropped[keyword] = true
	}
	_ = walkSchema(root, func(node map[string]any, isRoot bool) error {
		delete(node, "$schema")
		for _, keyword := range unfollowed(root, node, isRoot) {
			drop(node, keyword)
		}
		for keyword, value := range node {
			if !understood(keyword, value) {
				drop(node, keyword)
			}
		}
		return nil
	})
	if len(dropped) == 0 {
		dropped["$schema"] = true
	}
	loose, err := json.Marshal(root)
	if err != nil {
		return nil, nil
	}
	names := make([]string, 0, len(dropped))
	for name := range dropped {
		names = append(names, Visible(name, 40))
	}
	slices.Sort(names)
	return loose, names
}

// understood says whether a keyword can be read here, alone.
func understood(keyword string, value any) bool {
	switch keyword {
	case "pattern":
		text, ok := value.(string)
		return ok && compiles(text)
	case "patternProperties":
		patterns, ok := value.(map[string]any)
		for pattern := range patterns {
			ok = ok && compiles(pattern)
		}
		return ok
	}
	if holdsSchemas(keyword) {
		return true
	}
	raw, err := json.Marshal(map[string]any{keyword: value})
	return err == nil && json.Unmarshal(raw, new(jsonschema.Schema)) == nil
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}
