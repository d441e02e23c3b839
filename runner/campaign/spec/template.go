package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"gopkg.in/yaml.v3"
)

// Template is a job with placeholders for a target's values: ${{ target.path }} and ${{ values.from }}.
type Template struct {
	file string // file of the job
	node *yaml.Node
}

// MarshalJSON returns the job as written, without defaults.
func (t Template) MarshalJSON() ([]byte, error) {
	if t.node == nil {
		return []byte("null"), nil
	}
	var value any
	if err := t.node.Decode(&value); err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	return json.Marshal(value)
}

var (
	placeholder  = lazyregexp.New(`\$\{\{\s*([A-Za-z_]+)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	sampleFields = map[string]string{
		"repository": "octo-org/widgets", "owner": "octo-org", "name": "widgets", "base": "main", "sha": strings.Repeat("0", 40),
		"issue": "octo-org/widgets#1", "number": "1", "path": "services/api", "key": "widgets",
	}
)

// commandKeys lists keys whose text a shell runs, by the last part of their paths.
var commandKeys = []string{"run", "init", "command", "args", "applies_if"}

// problems returns the mistakes in the job, with sample values for the target. A placeholder in a command
// is a mistake, because a stranger's text would run as code.
func (t Template) problems() (problems config.Problems) {
	node := cloneNode(t.node)
	complain := func(at *yaml.Node, path, message, suggestion string) {
		problems = append(problems, t.problemAt(at, path, message, suggestion))
	}
	fillPlaceholders(node, func(path string, at *yaml.Node, space, name string) string {
		last := path[strings.LastIndexByte(path, '.')+1:]
		last, _, _ = strings.Cut(last, "[")
		switch {
		case slices.Contains(commandKeys, last):
			complain(at, path, "is a command, and a target's text in it would run as code; put the text into a variable with policy.env.set and use that", "")
		case space == "target" && sampleFields[name] == "":
			complain(at, path, "${{ target."+name+" }} is not a field of a target", suggestField(name))
		case space == "target":
			return sampleFields[name]
		case space != "values":
			if suggestion := config.Nearest(space, []string{"target", "values"}); suggestion != "" {
				complain(at, path, "${{ "+space+"."+name+" }} is not a field of a target", "${{ "+suggestion+"."+name+" }}")
			}
			return ""
		}
		return "x"
	})
	return append(problems, job.FileProblems(t.file, node, placeholderPaths(t.node), len(problems) == 0)...)
}

func (t Template) problemAt(at *yaml.Node, path, message, suggestion string) config.Problem {
	return config.Problem{File: t.file, Line: at.Line, Column: at.Column, Key: path, Message: message, Suggestion: suggestion}
}

// suggestField returns the placeholder for the most similar field of a target, or "".
func suggestField(name string) string {
	if meant := config.Nearest(name, slices.Sorted(maps.Keys(sampleFields))); meant != "" {
		return "${{ target." + meant + " }}"
	}
	return ""
}

// fillFromTarget replaces the placeholders below node by values, and returns a problem for each value that the target
// lacks.
func (t Template) fillFromTarget(node *yaml.Node, values map[string]string) (missing config.Problems) {
	fillPlaceholders(node, func(path string, at *yaml.Node, space, name string) string {
		value, has := values[space+"."+name]
		if !has && isOfTarget(space) {
			missing = append(missing, t.problemAt(at, path, "needs "+space+"."+name+", which the target lacks", ""))
		}
		return value
	})
	return missing
}

// ValueProblems returns why a target's values do not fit the job: a value is missing, or, if
// none is, a key does not accept the text.
func (t Template) ValueProblems(values map[string]string) config.Problems {
	node := cloneNode(t.node)
	if missing := t.fillFromTarget(node, values); len(missing) > 0 {
		return missing
	}
	var problems config.Problems
	filledPaths := placeholderPaths(t.node)
	visitTexts(node, "", func(path string, at *yaml.Node) {
		if !filledPaths[path] {
			return
		}
		if k := job.Format().Root.Find(path); k != nil && k.Shape == config.Text {
			if problem, suggestion := k.TextProblem(at.Value); problem != "" {
				problems = append(problems, t.problemAt(at, path, problem, suggestion))
			}
		}
	})
	return problems
}

// Fill returns a target's job as a job file. set has further keys by path, which override the job's.
func (t Template) Fill(values map[string]string, set map[string]any) ([]byte, error) {
	return t.fill(func(space, name string) string { return values[space+"."+name] }, set)
}

// fill returns the job as a job file. valueOf returns the value of the placeholder ${{ space.name }}. set has
// values that replace those of the job, by paths such as limits.cost_usd.
func (t Template) fill(valueOf func(space, name string) string, set map[string]any) ([]byte, error) {
	node := cloneNode(t.node)
	fillPlaceholders(node, func(_ string, _ *yaml.Node, space, name string) string { return valueOf(space, name) })
	for _, path := range slices.Sorted(maps.Keys(set)) {
		var value yaml.Node
		if err := value.Encode(set[path]); err != nil {
			return nil, fmt.Errorf("write the job of a target: %s: %w", path, err)
		}
		setNode(node, strings.Split(path, "."), &value)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, fmt.Errorf("write the job of a target: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

// setNode sets the value at a path of a mapping. It replaces an earlier value, and adds missing keys.
func setNode(node *yaml.Node, path []string, value *yaml.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 { // names and values alternate
		if node.Content[i].Value != path[0] {
			continue
		}
		if len(path) == 1 || node.Content[i+1].Kind != yaml.MappingNode {
			node.Content[i+1] = config.NestedMapping(path[1:], value)
			return
		}
		setNode(node.Content[i+1], path[1:], value)
		return
	}
	node.Content = append(node.Content, config.TextNode(path[0]), config.NestedMapping(path[1:], value))
}

// placeholderPaths returns the paths of texts with placeholders.
func placeholderPaths(node *yaml.Node) map[string]bool {
	paths := map[string]bool{}
	visitTexts(node, "", func(path string, at *yaml.Node) {
		if placeholder().MatchString(at.Value) {
			paths[path] = true
		}
	})
	return paths
}

// isOfTarget reports whether a placeholder with that space stands for a target's value.
func isOfTarget(space string) bool { return space == "target" || space == "values" }

// fillPlaceholders replaces each placeholder for a target's value by fill's result. It also calls fill for others, and
// keeps them unchanged.
func fillPlaceholders(node *yaml.Node, fill func(path string, at *yaml.Node, space, name string) string) {
	visitTexts(node, "", func(path string, at *yaml.Node) {
		at.Value = placeholder().ReplaceAllStringFunc(at.Value, func(mark string) string {
			parts := placeholder().FindStringSubmatch(mark)
			text := fill(path, at, parts[1], parts[2])
			if !isOfTarget(parts[1]) {
				return mark
			}
			at.Tag, at.Style = "!!str", yaml.DoubleQuotedStyle // a value that looks like a number stays text
			return text
		})
	})
}

// visitTexts calls visit for each scalar value of a document, not for keys.
func visitTexts(node *yaml.Node, path string, visit func(path string, at *yaml.Node)) {
	switch node.Kind {
	case yaml.MappingNode:
		for pair := range slices.Chunk(node.Content, 2) {
			visitTexts(pair[1], config.JoinPath(path, pair[0].Value), visit)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			visitTexts(item, config.JoinPath(path, i), visit)
		}
	case yaml.ScalarNode:
		visit(path, node)
	}
}

func cloneNode(node *yaml.Node) *yaml.Node {
	clone := *node
	clone.Content = make([]*yaml.Node, len(node.Content))
	for i, each := range node.Content {
		clone.Content[i] = cloneNode(each)
	}
	return &clone
}

// SetNode implements config.RawMapping.
func (t *Template) SetNode(file string, node *yaml.Node) { *t = Template{file, node} }

// Schema implements config.RawMapping. Any value may have placeholders, so the keys have no types.
func (*Template) Schema() map[string]any {
	properties := make(map[string]any)
	for _, k := range job.Format().Root.Keys {
		properties[k.Name] = map[string]any{"description": k.Meaning}
	}
	return map[string]any{"properties": properties, "additionalProperties": false}
}
