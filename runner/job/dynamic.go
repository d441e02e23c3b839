package job

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// DynamicTool is a tool of the job's own: Run for each call, or Serve for all of them.
type DynamicTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
	Run         Command        `json:"run"`
	Serve       Command        `json:"serve"`
	Timeout     Duration       `json:"timeout"`
	Network     Network        `json:"network"` // zero for that of Policy
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
	dynamicName = matching("a tool's name: letters, digits, - and _", `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`)
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

func checkArgument(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("must not contain NUL")
	}
	return nil
}

// command takes a script or argv.
func (d *decoder) command(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	var c Command
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == textTag:
		c.Script = node.Value
		if err := notBlank.check(c.Script); err != nil {
			return d.complain(path, node, err.Error())
		}
	case node.Kind == yaml.SequenceNode && len(node.Content) > 0:
		for _, item := range node.Content {
			if complaint := unwanted(item); complaint != "" {
				return d.complain(path, item, complaint)
			}
			if item.Kind != yaml.ScalarNode || isNull(item) {
				return d.complain(path, item, "must be text")
			}
			if err := checkArgument(item.Value); err != nil {
				return d.complain(path, item, err.Error())
			}
			c.Argv = append(c.Argv, item.Value)
		}
		if c.Argv[0] == "" {
			return d.complain(path, node, "names no program")
		}
	default:
		return d.wrongType(k, path, node)
	}
	into.Set(reflect.ValueOf(c))
	return true
}

func commandSchema(schema map[string]any) {
	delete(schema, "type")
	schema["anyOf"] = []any{
		map[string]any{"type": "string", "minLength": 1},
		map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string"}},
	}
}

// fitDynamicTools checks what no key of a tool can tell alone.
func (d *decoder) fitDynamicTools() {}
