// Package skill holds the tool load_skill, with which a model loads the instructions of a skill.
package skill

import (
	"context"
	"encoding/json"

	"github.com/agent-ci/agent-ci/tools"
)

// Name is the tool's name.
const Name = "load_skill"

// New returns the tool for the skills called names. load returns the result for a call that loads one of them.
func New(names []string, load func(call tools.Call, name string) tools.Result) tools.Tool {
	enum := ""
	if len(names) > 0 {
		list, _ := json.Marshal(names) // of texts, which never fails
		enum = `,"enum":` + string(list)
	}
	spec := tools.Spec{
		Name: Name,
		Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"The skill, by its name in the list at the start."` + enum +
			`}},"required":["name"],"additionalProperties":false}`),
		Description: "Loads a skill of the repository: how one kind of work is done here. Load it before you begin with such work, once.",
	}
	return tools.Tool{Spec: spec, Mutates: true, Run: tools.Decoded(func(_ context.Context, call tools.Call, a struct{ Name string }) (tools.Result, error) {
		if len(names) == 0 {
			return tools.Refuse(Name + ": this run has no skills. Go on without one."), nil
		}
		return load(call, a.Name), nil
	})}
}
