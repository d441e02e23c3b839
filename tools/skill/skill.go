// Package skill owns load_skill, which loads a skill's instructions. A receiver knows the skills.
package skill

import (
	"context"
	"encoding/json"

	"github.com/agent-ci/agent-ci/tools"
)

// Name is the tool's name.
const Name = "load_skill"

type property struct {
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Enum        []string `json:"enum,omitempty"`
}

type parameters struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
	Additional bool                `json:"additionalProperties"`
}

// New returns the tool for the named skills. load returns one of them.
func New(names []string, load func(call tools.Call, name string) tools.Result) tools.Tool {
	schema, _ := json.Marshal(parameters{ // it is made of texts, which can be encoded
		Type: "object", Required: []string{"name"},
		Properties: map[string]property{"name": {"string", "The skill, by its name in the list at the start.", names}},
	})
	spec := tools.Spec{
		Name: Name, Parameters: schema,
		Description: "Loads a skill of the repository: how one kind of work is done here. Load it before you begin with such work, once.",
	}
	return tools.Tool{Spec: spec, Mutates: true, Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
		var asked struct{ Name string }
		if err := call.Arguments(&asked); err != nil {
			return tools.Result{}, err
		}
		if len(names) == 0 {
			return tools.Refuse(Name + ": this run has no skills. Go on without one."), nil
		}
		return load(call, asked.Name), nil
	}}
}
