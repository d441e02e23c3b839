// Package declare describes tools for scripts as TypeScript methods, from the JSON Schemas of input
// and result. Names, descriptions and schemas may be hostile: none escapes its place, and all are
// bounded. Equal tools have byte-identical declarations.
package declare

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
)

const (
	maxAbout   = 4000 // bytes of a tool's description
	maxRemark  = 600  // bytes of a property's
	maxTypes   = 300  // in one schema, what is referred to each time
	deepest    = 8
	maxWritten = 12_000 // bytes of a type; a longer one is told in short
	maxLiteral = 100    // bytes of a value that is one of several
	maxValues  = 40     // that are told one by one
)

// Method declares a tool under a name from Names.
func Method(name string, spec tools.Spec) string {
	input := "input: string"
	if spec.Grammar == "" {
		schema := spec.Parameters
		if schema == nil {
			schema = spec.Accepts
		}
		input = "input: " + Type(schema, anyObject, 1)
		if !needed(schema) {
			input = "input?" + strings.TrimPrefix(input, "input")
		}
	}
	result := "string"
	if spec.Returns != nil {
		result = Type(spec.Returns, "unknown", 1)
	}
	return comment(clip.Visible(spec.Description, maxAbout), 1) + fmt.Sprintf("  %s(%s): Promise<%s>;\n", name, input, result)
}

const anyObject = "Record<string, unknown>"

// Type returns the type of a schema, or otherwise if too long.
func Type(raw json.RawMessage, otherwise string, indent int) string {
	var root any
	if len(raw) == 0 || json.Unmarshal(raw, &root) != nil {
		return otherwise
	}
	for _, remarks := range []bool{true, false} {
		w := writer{root: root, remarks: remarks}
		if text := w.of(root, indent, 0); len(text) <= maxWritten && w.types <= maxTypes {
			return text
		}
	}
	return otherwise
}

// needed says whether an input has to be given.
func needed(raw json.RawMessage) bool {
	var schema struct{ Required []string }
	return raw == nil || json.Unmarshal(raw, &schema) != nil || len(schema.Required) > 0
}

// comment formats text as a comment that it cannot end.
func comment(text string, indent int) string {
	if text = harmless(text); text == "" {
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

// harmless makes text unable to end a comment or a surrounding code block.
func harmless(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "*/", "* /")
	return strings.ReplaceAll(text, "```", "'''")
}
