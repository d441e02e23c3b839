package agent

import (
	"encoding/json"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/tools"
)

// definition is that of a tool in wire form.
type definition struct {
	Type        string          `json:"type"` // function, custom or that of a built-in tool
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`      // of a function
	Parameters  json.RawMessage `json:"parameters,omitempty"`  // of a function
	Format      *customFormat   `json:"format,omitempty"`      // of a custom tool
	Environment *environment    `json:"environment,omitempty"` // of a built-in tool
}

// environment is where a shell runs.
type environment struct {
	Type string `json:"type"`
}

// environments are of the built-in tools that need to be told that they run here.
var environments = map[string]*environment{"shell": {"local"}}

type customFormat struct {
	Type       string `json:"type"`
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// Definitions are the specs in the form in which a request carries them.
func Definitions(specs []tools.Spec) ([]json.RawMessage, error) {
	definitions := make([]json.RawMessage, 0, len(specs))
	for _, spec := range specs {
		raw, err := model.Encode(definitionOf(spec))
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, raw)
	}
	return definitions, nil
}

func definitionOf(spec tools.Spec) definition {
	switch {
	case spec.Builtin != "":
		return definition{Type: spec.Builtin, Environment: environments[spec.Builtin]}
	case spec.Grammar != "":
		format := &customFormat{"grammar", "lark", spec.Grammar}
		return definition{Type: "custom", Name: spec.Name, Description: spec.Description, Format: format}
	}
	return definition{Type: "function", Name: spec.Name, Description: spec.Description, Strict: new(bool), Parameters: spec.Parameters}
}
