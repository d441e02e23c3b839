// Package declare declares tools as TypeScript methods for scripts, from the JSON Schemas of input and result.
// Names, descriptions and schemas may be hostile: their text cannot end a comment or a type, and its length is
// limited. Equal tools have byte-identical declarations.
package declare

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
)

const (
	maxAbout   = 4000   // bytes of a tool's description
	maxRemark  = 600    // bytes of a property's description
	maxTypes   = 300    // types in one schema; a referenced type counts each time
	deepest    = 8      // levels of nested types
	maxWritten = 12_000 // bytes of a type; a longer one is written without remarks, or not at all
	maxLiteral = 100    // bytes of a value in an enum
	maxValues  = 40     // values of an enum
)

// Method returns the TypeScript declaration of a tool as a method. name is a result of Names.
func Method(name string, spec tools.Spec) string {
	input := "input: string"
	if spec.Grammar == "" {
		schema := spec.Parameters
		if schema == nil {
			schema = spec.Accepts
		}
		optional := "?"
		if requiresInput(schema) {
			optional = ""
		}
		input = "input" + optional + ": " + Type(schema, anyObject, 1)
	}
	result := "string"
	if spec.Returns != nil {
		result = Type(spec.Returns, "unknown", 1)
	}
	return comment(clip.Visible(spec.Description, maxAbout), 1) + fmt.Sprintf("  %s(%s): Promise<%s>;\n", name, input, result)
}

const anyObject = "Record<string, unknown>"

// Type returns the TypeScript type of a JSON Schema. It leaves out comments if the type is too long with them. It returns
// otherwise if the schema is invalid or the type is too long without comments, too. Lines after the first are indented
// by indent levels.
func Type(raw json.RawMessage, otherwise string, indent int) string {
	var root any
	if len(raw) == 0 || json.Unmarshal(raw, &root) != nil {
		return otherwise
	}
	for _, withComments := range []bool{true, false} {
		w := typeWriter{root: root, withComments: withComments}
		if text := w.typeOf(root, indent, 0); len(text) <= maxWritten && w.types <= maxTypes {
			return text
		}
	}
	return otherwise
}

// requiresInput reports whether a method with this input schema must be called with an argument.
func requiresInput(raw json.RawMessage) bool {
	var schema struct{ Required []string }
	return raw == nil || json.Unmarshal(raw, &schema) != nil || len(schema.Required) > 0
}

// comment returns text as a TypeScript comment, or "". It changes text that would end the comment.
func comment(text string, indent int) string {
	if text = withoutTerminators(text); text == "" {
		return ""
	}
	margin := strings.Repeat("  ", indent)
	lines := strings.Split(text, "\n")
	if len(lines) == 1 {
		return margin + "/** " + text + " */\n"
	}
	var all strings.Builder
	all.WriteString(margin + "/**\n")
	for _, line := range lines {
		all.WriteString(strings.TrimRight(margin+" * "+line, " \t") + "\n")
	}
	all.WriteString(margin + " */\n")
	return all.String()
}

// withoutTerminators changes text so that it cannot end a comment or a surrounding code block.
func withoutTerminators(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "*/", "* /")
	return strings.ReplaceAll(text, "```", "'''")
}
