package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// DynamicTool is a tool defined by the job: a command run for each call.
type DynamicTool struct {
	Name        string         `json:"name" config:"required,nonempty" form:"own_tool_name" about:"Name of the tool."`
	Description string         `json:"description" config:"required,nonempty" form:"not_blank" about:"What the tool does, for the model."`
	InputSchema map[string]any `json:"input_schema" config:"required" foreign:"input_schema" about:"JSON Schema of the arguments, an object."`
	Run         Command        `json:"run" config:"required,nonempty" form:"not_blank" about:"Script, or program and arguments as a list. It reads the arguments as JSON on standard input and prints the result."`
	Timeout     Duration       `json:"timeout" default:"5m" about:"Time limit of a call."`
	Defer       bool           `json:"defer" about:"true: the model finds the tool by searching only."`
}

// Command is a shell script, or a program with its arguments. In YAML and JSON the script is text
// and the program a list. The zero value means no command.
type Command struct {
	Script string   `config:"text"`
	Argv   []string `config:"list,nonempty,scalars,blank" form:"value" instead:"give a program with its arguments, or a script as text"`
}

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

// readInputSchema requires a JSON Schema for an object.
func readInputSchema(value any) (map[string]any, error) {
	schema, _ := value.(map[string]any)
	if schema["type"] != "object" {
		return nil, errors.New("must be a JSON Schema with type: object")
	}
	return schema, nil
}

// DescribeNotations implements config.MultiNotation.
func (*Command) DescribeNotations() string {
	return "a script as text, or a program with its arguments as a list"
}

// CheckValue implements config.MultiNotation.
func (c *Command) CheckValue(d *config.Decoder, path string, _ *yaml.Node) {
	if len(c.Argv) == 0 {
		return
	}
	wrong := programMistake(c.Argv, formatYAMLList)
	d.ReportIf(c.Argv[0] == "", path, "names no program")
	d.ReportIf(wrong != "", path, wrong)
}

const maxDynamicTools = 512

// checkDynamicTools checks every entry of tools.dynamic against the other keys.
func (d *validator) checkDynamicTools() {
	all := d.job.Tools.Dynamic
	for i, t := range all {
		if t.Name == "" || t.InputSchema == nil { // reported already
			continue
		}
		raw, err := json.Marshal(t.InputSchema)
		if err == nil {
			err = schema.Usable(raw)
		}
		d.reportFirst(config.JoinPath("tools.dynamic", i),
			mistake{strings.HasPrefix(strings.ToLower(t.Name), mcpPrefix), "name", "begins with " + mcpPrefix + ", as the names of tools of MCP servers do; choose another"},
			mistake{tools.OwnToolNamed(t.Name) != "", "name", "is a name of agent-ci's own tool " + tools.OwnToolNamed(t.Name) + "; choose another"},
			mistake{slices.ContainsFunc(all[:i], func(other DynamicTool) bool { return other.Name == t.Name }), "name", "is the name of another tool of tools.dynamic, too; give each its own"},
			mistake{len(t.Run.Argv) > 0 && isRelativePathOutside(path.Clean(t.Run.Argv[0])), "run", outOfRepository},
			mistake{err != nil, "input_schema", fmt.Sprintf("is not a JSON Schema that can check calls: %v", err)})
	}
}

// mcpPrefix begins the names of tools of MCP servers.
const mcpPrefix = "mcp__"

const outOfRepository = "must not lead out of the repository: a relative path names a program of the base commit"

// isRelativePathOutside reports whether a program is named by a relative path that leaves the repository.
func isRelativePathOutside(program string) bool {
	return !path.IsAbs(program) && slices.Contains(strings.Split(program, "/"), "..")
}
