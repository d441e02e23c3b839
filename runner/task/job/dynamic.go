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

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// DynamicTool is a tool defined by the job: a command run for each call.
type DynamicTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
	Run         Command        `json:"run"`
	Timeout     Duration       `json:"timeout"`
	Defer       bool           `json:"defer"`
}

// Command is a shell script, or a program with its arguments. In YAML and JSON the script is text
// and the program a list. The zero value means no command.
type Command struct {
	Script string
	Argv   []string
}

// IsZero reports whether c holds no command.
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
	dynamicName = form.Matching("a tool's name: letters, digits, - and _, at most 64, the first neither - nor _", `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`)
	inputSchema = &config.Foreign{
		Read:   readInputSchema,
		Schema: map[string]any{"type": "object", "required": []string{"type"}},
	}
)

func readInputSchema(value any) (map[string]any, error) {
	schema, _ := value.(map[string]any)
	if schema["type"] != "object" {
		return nil, errors.New("must be a JSON Schema with type: object")
	}
	return schema, nil
}

// argvKey describes a list of a program and its arguments. Arguments may be empty.
var argvKey = sync.OnceValue(func() *config.Key {
	k := config.NewKey([]config.Rule{{Path: "", Form: form.VariableValue}, {Path: "[]", Scalars: true}}, reflect.TypeFor[[]string]())
	k.Elem.NonEmpty = false
	return k
})

// Words implements config.Custom.
func (*Command) Words() string { return "a script as text, or a program with its arguments as a list" }

// DecodeKey implements config.Custom.
func (c *Command) DecodeKey(d *config.Decoder, k *config.Key, path string, node *yaml.Node) bool {
	switch {
	case node.Kind == yaml.ScalarNode:
		return d.Text(&config.Key{Rule: config.Rule{Form: form.NotBlank, NonEmpty: true}, Shape: config.CustomValue}, path, node, &c.Script)
	case node.Kind != yaml.SequenceNode:
		return d.WrongType(k, path, node)
	case len(node.Content) == 0:
		return d.Complain(path, node, "is an empty list; give a program with its arguments, or a script as text")
	case !d.Value(argvKey(), path, node, &c.Argv):
		return false
	case c.Argv[0] == "":
		return d.Complain(path, node, "names no program")
	}
	wrong := programMistake(c.Argv, YAMLList)
	return wrong == "" || d.Complain(path, node, wrong)
}

// DescribeKey implements config.Custom.
func (*Command) DescribeKey(_ *config.Key, schema map[string]any) {
	schema["anyOf"] = []any{
		map[string]any{"type": "string", "minLength": 1},
		map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string"}},
	}
}

const maxDynamicTools = 512

// fitDynamicTools checks every entry of tools.dynamic against the other keys.
func (d *checks) fitDynamicTools() {
	all := d.job.Tools.Dynamic
	for i, t := range all {
		if t.Name == "" || t.InputSchema == nil { // reported already
			continue
		}
		raw, err := json.Marshal(t.InputSchema)
		if err == nil {
			err = schema.Usable(raw)
		}
		d.wrongFirst(config.At("tools.dynamic", i),
			mistake{strings.HasPrefix(strings.ToLower(t.Name), mcpPrefix), "name", "begins with " + mcpPrefix + ", as the names of tools of MCP servers do; choose another"},
			mistake{tools.Taken(t.Name) != "", "name", "is a name of agent-ci's own tool " + tools.Taken(t.Name) + "; choose another"},
			mistake{slices.ContainsFunc(all[:i], func(other DynamicTool) bool { return other.Name == t.Name }), "name", "is the name of another tool of tools.dynamic, too; give each its own"},
			mistake{t.Run.IsZero(), "run", "is missing"},
			mistake{len(t.Run.Argv) > 0 && leavesRepository(path.Clean(t.Run.Argv[0])), "run", outOfRepository},
			mistake{err != nil, "input_schema", fmt.Sprintf("is no JSON Schema that calls can be checked by: %v", err)})
	}
}

// mcpPrefix begins the names of tools of MCP servers.
const mcpPrefix = "mcp__"

const outOfRepository = "must not lead out of the repository: a relative path names a program of the base commit"

// leavesRepository reports whether program is a relative path out of the repository.
func leavesRepository(program string) bool {
	return !path.IsAbs(program) && slices.Contains(strings.Split(program, "/"), "..")
}
