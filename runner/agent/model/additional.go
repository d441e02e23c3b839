package model

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// AdditionalToolsType is the type of an input item with tool definitions.
const AdditionalToolsType = "additional_tools"

// additionalTools are tools in the input.
type additionalTools struct {
	Type  string            `json:"type"`
	Role  string            `json:"role"`
	Tools []json.RawMessage `json:"tools"`
}

// AdditionalTools returns an input item with tool definitions.
func AdditionalTools(definitions []json.RawMessage) (json.RawMessage, error) {
	return Encode(additionalTools{AdditionalToolsType, "developer", definitions})
}

type message struct {
	Type    string     `json:"type"`
	Role    string     `json:"role"`
	Content []textPart `json:"content"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// open moves the instructions and the tools run by agent-ci to the start of the input. The API's
// own tools have no other place than the request.
func (b *body) open() error {
	here, groups, hosted, err := split(b.Tools)
	if err != nil {
		return err
	}
	b.Tools = hosted
	if len(here) > 0 {
		group, err := Namespace(FunctionsNamespace, "Tools of the runner.", here)
		if err != nil {
			return err
		}
		groups = append([]json.RawMessage{group}, groups...)
	}
	if len(groups) > 0 {
		tools, err := AdditionalTools(groups)
		if err != nil {
			return err
		}
		b.Input = append(b.Input, tools)
	}
	instructions, err := Encode(message{"message", "developer", []textPart{{"input_text", *b.Instructions}}})
	b.Instructions, b.Input = nil, append(b.Input, instructions)
	return err
}

// split separates tools run by agent-ci, and groups of them, from tools run by the API.
func split(tools []json.RawMessage) (here, groups, hosted []json.RawMessage, err error) {
	for _, tool := range tools {
		var is struct{ Type string }
		if err := json.Unmarshal(tool, &is); err != nil {
			return nil, nil, nil, fmt.Errorf("read tool definition: %w", err)
		}
		switch is.Type {
		case "function", "custom":
			here = append(here, tool)
		case namespaceType:
			groups = append(groups, tool)
		default:
			hosted = append(hosted, tool)
		}
	}
	return here, groups, hosted, nil
}

// notAdditional matches refusals of items of tools. Endpoints name the unknown field or its place.
var notAdditional = lazyregexp.New(`(?i)additional_tools|namespace|reasoning\.context|all_turns|\binput(?:\[[01]\]|\.[01]\b)|` +
	`(?:unknown|invalid|unsupported|unexpected|unrecognized)\b.{0,20}\b(?:item|input)\b.{0,10}\btype\b`)

// RefusesAdditional reports whether an endpoint refuses tools and instructions as input items.
func (f *Failure) RefusesAdditional() bool {
	return f.Kind == InvalidRequest && (f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity) && notAdditional().MatchString(f.Message)
}
