package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// DynamicTool is a tool of the job's own: a command that runs for each call.
type DynamicTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
	Run         Command        `json:"run"`
	Timeout     Duration       `json:"timeout"`
	Defer       bool           `json:"defer"`
}

// Command is a script for a shell, or a program with its arguments. In YAML and JSON it is
// the text or the list. The zero value is none.
type Command struct {
	Script string
	Argv   []string
}

// IsZero says that there is no command.
func (c Command) IsZero() bool { return c.Script == "" && len(c.Argv) == 0 }

func (c Command) MarshalJSON() ([]byte, error) {
	if len(c.Argv) > 0 {
		return json.Marshal(c.Argv)
	}
	return json.Marshal(c.Script)
}

func (c *Command) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &c.Script); err == nil {
		return nil
	}
	return json.Unmarshal(raw, &c.Argv)
}

var (
	dynamicName = matching("a tool's name: letters, digits, - and _, at most 64, the first neither - nor _", `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`)
	inputSchema = &foreign{
		about:  "a JSON Schema of an object",
		read:   readInputSchema,
		schema: map[string]any{"type": "object", "required": []string{"type"}},
	}
)

func readInputSchema(value any) (map[string]any, error) {
	schema, _ := value.(map[string]any)
	if schema["type"] != "object" {
		return nil, errors.New("must be a JSON Schema with type: object")
	}
	return schema, nil
}

// argvKey is a program with its arguments, which may be empty.
var argvKey = sync.OnceValue(func() *key {
	k := newKey(map[string]rule{"": {form: argument}, "[]": {scalars: true}}, "", reflect.TypeFor[[]string]())
	k.elem.filled = false
	return k
})

// command takes a script or argv.
func (d *decoder) command(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	c := into.Addr().Interface().(*Command)
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == textTag:
		c.Script = node.Value
		err := notBlank.check(c.Script)
		return err == nil || d.complain(path, node, err.Error())
	case node.Kind != yaml.SequenceNode:
		return d.wrongType(k, path, node)
	case len(node.Content) == 0:
		return d.complain(path, node, "is an empty list; give a program with its arguments, or a script as text")
	case !d.list(argvKey(), path, node, reflect.ValueOf(&c.Argv).Elem()):
		return false
	case c.Argv[0] == "":
		return d.complain(path, node, "names no program")
	}
	wrong := misnamed(c.Argv, ListOf)
	return wrong == "" || d.complain(path, node, wrong)
}

func commandSchema(schema map[string]any) {
	delete(schema, "type")
	schema["anyOf"] = []any{
		map[string]any{"type": "string", "minLength": 1},
		map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string"}},
	}
}

// mostDynamicTools is how many tools of its own a job may have.
const mostDynamicTools = 512

// fitDynamicTools checks what no key of a tool can tell alone.
func (d *decoder) fitDynamicTools() {
	all := d.job.Tools.Dynamic
	for i, tool := range all {
		key, wrong := tool.misfit(all[:i])
		if wrong == "" {
			continue
		}
		d.wrong(fmt.Sprintf("tools.dynamic[%d].%s", i, key), wrong)
	}
}

// misfit is what is wrong with a tool, and in which of its keys; before are those that stand
// before it.
func (t DynamicTool) misfit(before []DynamicTool) (key, wrong string) {
	switch {
	case t.Name == "" || t.InputSchema == nil: // which is complained of already
		return "", ""
	case strings.HasPrefix(strings.ToLower(t.Name), mcpPrefix):
		return "name", "begins with " + mcpPrefix + ", as the names of tools of MCP servers do; choose another"
	case tools.Taken(t.Name) != "":
		return "name", "is a name of agent-ci's own tool " + tools.Taken(t.Name) + "; choose another"
	case slices.ContainsFunc(before, func(other DynamicTool) bool { return other.Name == t.Name }):
		return "name", "is the name of another tool of tools.dynamic, too; give each its own"
	case t.Run.IsZero():
		return "run", "is missing"
	case t.Run.leadsOut():
		return "run", outOfRepository
	}
	return t.misfitSchema()
}

const outOfRepository = "must not lead out of the repository: a relative path names a program of the base commit"

// leadsOut says whether a command's program is named by a relative path out of the repository.
func (c Command) leadsOut() bool {
	return len(c.Argv) > 0 && strings.Contains(c.Argv[0], "/") && !path.IsAbs(c.Argv[0]) && slices.Contains(strings.Split(path.Clean(c.Argv[0]), "/"), "..")
}

// mcpPrefix begins the names of tools of MCP servers.
const mcpPrefix = "mcp__"

func (t DynamicTool) misfitSchema() (key, wrong string) {
	raw, err := json.Marshal(t.InputSchema)
	if err == nil {
		err = schema.Usable(raw)
	}
	if err != nil {
		return "input_schema", "is no JSON Schema that calls can be checked by: " + err.Error()
	}
	return "", ""
}
