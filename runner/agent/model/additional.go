package model

import (
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// moveToolsToInput moves the instructions and the tools run by agent-ci to the start of the input. The API's
// own tools have no other place than the request.
func (b *body) moveToolsToInput() error {
	here, groups, hosted, err := splitByRunner(b.Tools)
	if err != nil {
		return err
	}
	b.Tools = hosted
	if len(here) > 0 {
		group, err := rawitem.Namespace(rawitem.FunctionsNamespace, "Tools of the runner.", here)
		if err != nil {
			return err
		}
		groups = append([]json.RawMessage{group}, groups...)
	}
	if len(groups) > 0 {
		tools, err := rawitem.AdditionalTools(groups)
		if err != nil {
			return err
		}
		b.Input = append(b.Input, tools)
	}
	instructions, err := rawitem.Words("developer", *b.Instructions)
	b.Instructions, b.Input = nil, append(b.Input, instructions)
	return err
}

// splitByRunner separates tools run by agent-ci, and groups of them, from tools run by the API.
func splitByRunner(tools []json.RawMessage) (here, groups, hosted []json.RawMessage, err error) {
	for _, tool := range tools {
		var is struct{ Type string }
		if err := json.Unmarshal(tool, &is); err != nil {
			return nil, nil, nil, fmt.Errorf("read tool definition: %w", err)
		}
		switch is.Type {
		case "function", "custom":
			here = append(here, tool)
		case rawitem.NamespaceType:
			groups = append(groups, tool)
		default:
			hosted = append(hosted, tool)
		}
	}
	return here, groups, hosted, nil
}
