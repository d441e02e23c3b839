package agent

import (
	"encoding/json"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/tools"
)

// functionTool, customTool and builtinTool are tool definitions in wire form.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Strict      bool            `json:"strict"`
	Parameters  json.RawMessage `json:"parameters"`
}

type customTool struct {
	Type        string       `json:"type"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Format      customFormat `json:"format"`
}

type builtinTool struct {
	Type        string       `json:"type"`
	Environment *environment `json:"environment,omitempty"`
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
		raw, err := model.Encode(definition(spec))
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, raw)
	}
	return definitions, nil
}

func definition(spec tools.Spec) any {
	switch {
	case spec.Builtin != "":
		return builtinTool{spec.Builtin, environments[spec.Builtin]}
	case spec.Grammar != nil:
		return customTool{"custom", spec.Name, spec.Description, customFormat{"grammar", spec.Grammar.Syntax, spec.Grammar.Definition}}
	}
	return functionTool{"function", spec.Name, spec.Description, false, spec.Parameters}
}
