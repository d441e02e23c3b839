package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// hostedTypes lists the tool types run by the API itself.
var hostedTypes = []string{"web_search", "web_search_preview", "file_search", "code_interpreter", "mcp", "image_generation"}

// readHostedTool reads an entry of tools.hosted, in the form of an API request. A tool without further
// settings may be written as its type alone.
func readHostedTool(value any) (map[string]any, error) {
	if name, isText := value.(string); isText {
		value = map[string]any{"type": name}
	}
	tool, _ := value.(map[string]any)
	kind, _ := tool["type"].(string)
	switch {
	case kind == "":
		return nil, errors.New("must be a type such as web_search, or a mapping with a type")
	case kind == "computer_use_preview" || kind == "computer":
		return nil, fmt.Errorf("%s needs a screen, and a run has none; leave it out", kind)
	case slices.Contains([]string{"shell", "local_shell", "apply_patch", "function", "custom"}, kind):
		return nil, fmt.Errorf("%s is run by agent-ci and not by the API; model.tools says how such tools are offered", kind)
	case !slices.Contains(hostedTypes, kind):
		return nil, fmt.Errorf("%q is not one of %s", clip.Bytes(kind, 60), strings.Join(hostedTypes, ", "))
	}
	return tool, completeHosted(kind, tool)
}

// completeHosted fills in settings with a single possible value. It rejects a tool that lacks others.
func completeHosted(kind string, tool map[string]any) error {
	switch kind {
	case "code_interpreter":
		if tool["container"] == nil {
			tool["container"] = map[string]any{"type": "auto"}
		}
	case "file_search":
		if ids, _ := tool["vector_store_ids"].([]any); len(ids) == 0 {
			return errors.New("file_search needs vector_store_ids, a list of the stores to search")
		}
	case "mcp":
		return completeMCP(tool)
	}
	return nil
}

// completeMCP checks a hosted MCP server. Nobody can approve, so require_approval is always never.
func completeMCP(tool map[string]any) error {
	address, _ := tool["server_url"].(string)
	if tool["require_approval"] == nil {
		tool["require_approval"] = "never"
	}
	switch {
	case strings.HasPrefix(strings.ToLower(address), "http://"):
		return errors.New("mcp has a server_url that is http, where others could read and change the traffic; write https. A server of this machine belongs in mcp_servers")
	case tool["server_label"] == nil:
		return errors.New("mcp needs server_label, the name of the server")
	case tool["server_url"] == nil && tool["connector_id"] == nil:
		return errors.New("mcp needs server_url or connector_id")
	case tool["require_approval"] != "never":
		return errors.New("mcp must have require_approval: never, since nobody is there to approve; narrow allowed_tools instead")
	}
	return nil
}
