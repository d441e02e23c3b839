package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
)

// List is a server's description of itself and its tools. The run keeps it as JSON.
type List struct {
	Server       string   `json:"server"`   // in the job
	Revision     string   `json:"revision"` // of the protocol, that is spoken
	Name         string   `json:"name"`     // as the server calls itself
	Version      string   `json:"version"`
	Instructions string   `json:"instructions,omitempty"`
	Resources    bool     `json:"resources"` // it has some, or may have
	Tools        []Listed `json:"tools"`     // all of them, sorted by name
	// Restarted reports a server restarted or asked again for an older revision.
	Restarted bool `json:"restarted,omitempty"`
}

// Listed is a tool as its server describes it.
type Listed struct {
	Tool        string          `json:"tool"`    // the server's own name
	Allowed     bool            `json:"allowed"` // by the job
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of its arguments, of an allowed tool
	SHA256      string          `json:"sha256"`           // of the schema, with its keys sorted and without spaces
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// Changed describes the differences of callable tools in a later list, or returns "".
func (l List) Changed(later List) string {
	before, now := l.allowed(), later.allowed()
	var changes []string
	for _, tool := range l.Tools {
		after, there := now[tool.Tool]
		switch {
		case !tool.Allowed:
		case !there:
			changes = append(changes, oneLine(tool.Tool)+" is not there any more")
		case after.SHA256 != tool.SHA256:
			changes = append(changes, oneLine(tool.Tool)+" takes other arguments")
		case after.Description != tool.Description:
			changes = append(changes, oneLine(tool.Tool)+" is described otherwise")
		}
	}
	for _, tool := range later.Tools {
		if _, there := before[tool.Tool]; tool.Allowed && !there {
			changes = append(changes, oneLine(tool.Tool)+" is new")
		}
	}
	return enumerate(changes)
}

func (l List) allowed() map[string]Listed {
	allowed := map[string]Listed{}
	for _, tool := range l.Tools {
		if tool.Allowed {
			allowed[tool.Tool] = tool
		}
	}
	return allowed
}

// enumerate joins the first few words.
func enumerate(words []string) string {
	const most = 20
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	return strings.Join(words, ", ")
}
