package tools

import "strings"

// The stages by which a schema is shortened, in their order; each leaves it a schema that takes
// no less than it did.

// dropDescriptions takes away all words but those of the root's properties' names.
func dropDescriptions(root map[string]any) {
	_ = walkSchema(root, func(node map[string]any, _ bool) error {
		delete(node, "description")
		delete(node, "title")
		return nil
	})
}

// dropDefinitions takes away what is referred to; a value of it may be anything.
func dropDefinitions(root map[string]any) {
	_ = walkSchema(root, func(node map[string]any, _ bool) error {
		if _, there := node["$ref"]; there {
			clear(node)
		}
		delete(node, "$defs")
		delete(node, "definitions")
		return nil
	})
}

// dropDepths leaves of what lies deep only that it is an object or a list.
func dropDepths(root map[string]any) {
	var walk func(node map[string]any, depth int)
	walk = func(node map[string]any, depth int) {
		for _, sub := range subschemas(node) {
			inner, ok := sub.schema.(map[string]any)
			if !ok {
				continue
			}
			below := depth
			if sub.at == property || sub.at == element {
				below++
			}
			if below >= deepestKept && isNested(inner) {
				sub.replace(shallow(inner))
				continue
			}
			walk(inner, below)
		}
	}
	walk(root, 0)
}

// isNested says whether a schema describes what lies below its values.
func isNested(node map[string]any) bool {
	return len(subschemas(node)) > 0
}

// shallow is a schema of the same type that describes nothing below.
func shallow(node map[string]any) map[string]any {
	switch kind, _ := node["type"].(string); kind {
	case "object":
		return map[string]any{"type": "object", "properties": map[string]any{}}
	case "array":
		return map[string]any{"type": "array", "items": map[string]any{}}
	}
	return map[string]any{}
}

// dropCompositions leaves of values that are one of several kinds nothing but that they are there.
func dropCompositions(root map[string]any) {
	_ = walkSchema(root, func(node map[string]any, _ bool) error {
		for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
			delete(node, keyword)
		}
		return nil
	})
}

// dropProperties leaves of the root's properties their types, and where those are too many, only
// the required ones.
func dropProperties(root map[string]any) {
	properties, _ := root["properties"].(map[string]any)
	size := 0
	for name, value := range properties {
		node, _ := value.(map[string]any)
		properties[name] = shallowOrType(node)
		size += len(name) + len(`"":{"type":"string"},`)
	}
	delete(root, "additionalProperties")
	if size <= mostFitted*3/4 {
		return
	}
	required, _ := root["required"].([]any)
	needed := map[string]any{}
	for _, name := range required {
		text, _ := name.(string)
		needed[text] = properties[text]
	}
	root["properties"] = needed
}

func shallowOrType(node map[string]any) map[string]any {
	if isNested(node) {
		return shallow(node)
	}
	if kind, there := node["type"]; there {
		return map[string]any{"type": kind}
	}
	return map[string]any{}
}

// leadsTo says whether one of the references that are used leads to a place or into it.
func leadsTo(used map[string]bool, pointer string) bool {
	for reference := range used {
		if reference == pointer || strings.HasPrefix(reference, pointer+"/") {
			return true
		}
	}
	return false
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
