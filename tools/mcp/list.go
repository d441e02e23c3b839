package mcp

import (
	"encoding/json"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// List is a server's description of itself and its tools. The run stores it as JSON.
type List struct {
	Server       string   `json:"server"`   // name in the job
	Revision     string   `json:"revision"` // revision of the protocol in use
	Name         string   `json:"name"`     // as the server calls itself
	Version      string   `json:"version"`
	Instructions string   `json:"instructions,omitempty"`
	Resources    bool     `json:"resources"` // the server may have resources
	Tools        []Listed `json:"tools"`     // all tools, sorted by name
	// Restarted reports that the server was restarted, or asked again, for an older revision.
	Restarted bool `json:"restarted,omitempty"`
}

// Listed is a tool as its server describes it.
type Listed struct {
	Tool        string          `json:"tool"`    // the server's own name
	Allowed     bool            `json:"allowed"` // by the job
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of the arguments; only for an allowed tool
	SHA256      string          `json:"sha256"`           // of the schema with sorted keys and without spaces
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// maxListed is the maximum number of entries of a list in a message.
const maxListed = 20

// Changed describes how the allowed tools differ in a later list. It returns "" if they do not.
func (l List) Changed(later List) string {
	before, now := l.allowedTools(), later.allowedTools()
	var changes []string
	for _, tool := range l.Tools {
		if !tool.Allowed {
			continue
		}
		current, exists := now[tool.Tool]
		switch {
		case !exists:
			changes = append(changes, oneLine(tool.Tool)+" is not there any more")
		case current.SHA256 != tool.SHA256:
			changes = append(changes, oneLine(tool.Tool)+" takes other arguments")
		case current.Description != tool.Description:
			changes = append(changes, oneLine(tool.Tool)+" is described otherwise")
		}
	}
	for _, tool := range later.Tools {
		if _, exists := before[tool.Tool]; tool.Allowed && !exists {
			changes = append(changes, oneLine(tool.Tool)+" is new")
		}
	}
	return clip.Some(changes, maxListed)
}

// allowedTools returns the allowed tools by name.
func (l List) allowedTools() map[string]Listed {
	allowed := map[string]Listed{}
	for _, tool := range l.Tools {
		if tool.Allowed {
			allowed[tool.Tool] = tool
		}
	}
	return allowed
}
