package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// dynamicTools is a job with tools, each a mapping without what all have.
func dynamicTools(all ...string) config.Layer {
	text := start + "tools: {dynamic: ["
	for _, tool := range all {
		text += "{description: x, " + tool + "}, "
	}
	return jobFile(text + "]}\n")
}

const anyObject = "input_schema: {type: object}"

func TestLoadsDynamicTools(t *testing.T) {
	job := mustLoad(t, dynamicTools(
		"name: one, run: [./a, b], "+anyObject,
		"name: two, run: 'echo x', timeout: 3s, defer: true, input_schema: {type: object, properties: {n: {type: integer}}, required: [n]}",
	))
	object := map[string]any{"type": "object"}
	integer := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []any{"n"}}
	usual := mustDuration(t, "5m")
	want := []DynamicTool{
		{Name: "one", Description: "x", InputSchema: object, Run: Command{Argv: []string{"./a", "b"}}, Timeout: usual},
		{Name: "two", Description: "x", InputSchema: integer, Run: Command{Script: "echo x"}, Timeout: mustDuration(t, "3s"), Defer: true},
	}
	must.Same(t, want, job.Tools.Dynamic, "the result")
}

func TestRefusesInvalidDynamicTools(t *testing.T) {
	const fine = "name: fine, run: x, " + anyObject
	for _, test := range []struct {
		tool, want string
	}{
		{"name: a, run: [make lint, 'a: b'], " + anyObject, `tools.dynamic[1].run: has a program and its arguments in one word, which no shell takes apart; write [make, lint, "a: b"].`},
		{"name: a, " + anyObject, "tools.dynamic[1].run: is missing"},
		{"run: x, " + anyObject, "tools.dynamic[1].name: is missing"},
		{"name: a, run: x", "tools.dynamic[1].input_schema: is missing"},
		{"name: fine, run: x, " + anyObject, "tools.dynamic[1].name: is the name of another tool"},
		{"name: read_file, run: x, " + anyObject, "tools.dynamic[1].name: is a name of agent-ci's own tool read_file"},
		{"name: Bash, run: x, " + anyObject, "tools.dynamic[1].name: is a name of agent-ci's own tool exec_command"},
		{"name: tool_search, run: x, " + anyObject, "tools.dynamic[1].name: is a name of agent-ci's own tool tool_search"},
		{"name: read_mcp_resource, run: x, " + anyObject, "tools.dynamic[1].name: is a name of agent-ci's own"},
		{"name: mcp__a__b, run: x, " + anyObject, "tools.dynamic[1].name: begins with mcp__"},
		{"name: MCP__a, run: x, " + anyObject, "tools.dynamic[1].name: begins with mcp__"},
		{"name: 'a b', run: x, " + anyObject, "tools.dynamic[1].name: must be a tool's name"},
		{"name: " + strings.Repeat("a", 65) + ", run: x, " + anyObject, "tools.dynamic[1].name: must be a tool's name: letters, digits, - and _, at most 64"},
		{"name: a, run: x, input_schema: {type: array}", "tools.dynamic[1].input_schema: must be a JSON Schema with type: object"},
		{"name: a, run: x, input_schema: {type: object, properties: {n: {type: 3}}}", "tools.dynamic[1].input_schema: is not a JSON Schema"},
		{"name: a, run: x, input_schema: {type: object, properties: {n: {pattern: '('}}}", "tools.dynamic[1].input_schema: is not a JSON Schema"},
		{"name: a, run: x, input_schema: {type: object, properties: {n: {$ref: '#/$defs/none'}}}", "tools.dynamic[1].input_schema: is not a JSON Schema"},
		{"name: a, run: [], " + anyObject, "tools.dynamic[1].run: is an empty list"},
		{"name: a, run: '', " + anyObject, "tools.dynamic[1].run: must not be empty"},
		{"name: a, run: [../x], " + anyObject, "tools.dynamic[1].run: must not lead out of the repository"},
		{"name: a, run: [''], " + anyObject, "tools.dynamic[1].run: names no program"},
		{"name: a, run: '  ', " + anyObject, "tools.dynamic[1].run: must"},
		{"name: a, run: {a: b}, " + anyObject, "tools.dynamic[1].run: must be"},
	} {
		_, err := Load(dynamicTools(fine, test.tool))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: it says %v, not %q", test.tool, err, test.want)
		} else if strings.Count(err.Error(), "tools.dynamic[1].") > 1 {
			t.Errorf("%s: it says more than once what is wrong: %v", test.tool, err)
		}
	}
	var many []string
	for i := range maxDynamicTools + 1 {
		many = append(many, fmt.Sprintf("name: a%d, run: x, %s", i, anyObject))
	}
	must.Fail(t, "tools.dynamic: has more than 512", must.Err(Load(dynamicTools(many...))), len(many), "tools it")
}
