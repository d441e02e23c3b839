// Package declare owns how a tool is told to a model that calls it in a script: as a method in
// TypeScript, made of the JSON Schemas of its input and result. Names, descriptions and schemas may be
// of strangers: none of them gets out of its place, and each is told in bounds. The same tools are
// declared the same, byte for byte.
package declare

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/tools"
)

const (
	mostAbout   = 4000 // bytes of a tool's description
	mostRemark  = 600  // bytes of a property's
	mostTypes   = 300  // in one schema, what is referred to each time
	deepest     = 8
	mostWritten = 12_000 // bytes of a type; a longer one is told in short
	mostLiteral = 100    // bytes of a value that is one of several
	mostValues  = 40     // that are told one by one
)

// Method declares a tool under a name that Names gave.
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
	return comment(clip.Visible(spec.Description, mostAbout), 1) + fmt.Sprintf("  %s(%s): Promise<%s>;\n", name, input, result)
}

const anyObject = "Record<string, unknown>"

// Type is the type of the values that fit a schema, or otherwise where that can't be said in short.
func Type(raw json.RawMessage, otherwise string, indent int) string {
	var root any
	if len(raw) == 0 || json.Unmarshal(raw, &root) != nil {
		return otherwise
	}
	for _, remarks := range []bool{true, false} {
		w := writer{root: root, remarks: remarks}
		if text := w.of(root, indent, 0); len(text) <= mostWritten && w.types <= mostTypes {
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

// comment is text in a comment of its own lines, out of which it does not get.
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

// harmless is text that neither ends a comment nor a block of code around it.
func harmless(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "*/", "* /")
	return strings.ReplaceAll(text, "```", "'''")
}
