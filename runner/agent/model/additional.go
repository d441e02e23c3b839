package model

import (
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// moveToolsToInput moves the instructions and the tools that agent-ci runs to the start of the input. Tools that the
// API runs itself stay in the field tools, because the API accepts them only there.
func (b *RequestBody) moveToolsToInput() error {
	local, groups, hosted, err := splitByRunner(b.Tools)
	if err != nil {
		return err
	}
	b.Tools = hosted
	if len(local) > 0 {
		group, err := rawitem.Namespace(rawitem.FunctionsNamespace, "Tools of the runner.", local)
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
	instructions, err := rawitem.TextMessage("developer", *b.Instructions)
	b.Instructions, b.Input = nil, append(b.Input, instructions)
	return err
}

// splitByRunner splits tools into those that agent-ci runs, namespaces of such tools, and those that the API runs.
func splitByRunner(tools []json.RawMessage) (local, groups, hosted []json.RawMessage, err error) {
	for _, tool := range tools {
		var definition struct{ Type string }
		if err := plainjson.Unmarshal(tool, &definition); err != nil {
			return nil, nil, nil, fmt.Errorf("read tool definition: %w", err)
		}
		switch definition.Type {
		case "function", "custom":
			local = append(local, tool)
		case rawitem.NamespaceType:
			groups = append(groups, tool)
		default:
			hosted = append(hosted, tool)
		}
	}
	return local, groups, hosted, nil
}
