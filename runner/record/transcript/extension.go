package transcript

import "slices"

// MCPServer is an event about the state of an MCP server.
type MCPServer struct {
	Name     string `json:"name"`               // its name in the job
	State    string `json:"state"`              // ready, failed, ended, changed
	Command  string `json:"command,omitempty"`  // of a server started by agent-ci
	Host     string `json:"host,omitempty"`     // host and port of a server at an address
	Revision string `json:"revision,omitempty"` // version of the protocol in use
	// Server and Version are the name and version that the server reports.
	Server  string    `json:"server,omitempty"`
	Version string    `json:"version,omitempty"`
	Tools   []MCPTool `json:"tools,omitempty"`
	Reason  string    `json:"why,omitempty"` // the reason for a state other than ready
	Seconds float64   `json:"seconds"`       // time since the server's start
	Log     string    `json:"log,omitempty"` // file in the run directory with its standard error
	// File is the file in the run directory with the server's complete list of tools. SHA256 is the
	// digest of that file.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// MCPTool is a server's tool that the model may call.
type MCPTool struct {
	Name       string `json:"name"`   // for the model
	ServerName string `json:"tool"`   // the server's own name
	SHA256     string `json:"sha256"` // of its schema, as the server sent it
	// UncheckedSchema names a part of the schema that arguments are not checked against.
	UncheckedSchema string `json:"unchecked,omitempty"`
}

// The states of an MCP server.
const (
	MCPReady   = "ready"
	MCPFailed  = "failed"  // it did not start, or lacks a tool
	MCPEnded   = "ended"   // it ended while in use
	MCPChanged = "changed" // it reports changed tools; the run keeps the first list
)

// mcpServer adds a server or updates its state.
func (f *Folder) mcpServer(d MCPServer) {
	i := slices.IndexFunc(f.view.MCPServers, func(known MCPServer) bool { return known.Name == d.Name })
	if i < 0 {
		f.view.MCPServers = append(f.view.MCPServers, d)
		return
	}
	f.view.MCPServers[i] = f.view.MCPServers[i].updatedBy(d)
}

// updatedBy returns the server after a later event. Its tools stay the same unless the event lists
// them again.
func (s MCPServer) updatedBy(later MCPServer) MCPServer {
	switch {
	case s.Name == "" || later.File != "":
		return later
	case later.State != MCPChanged: // a changed list of tools does not end the server
		s.State, s.Reason, s.Log = later.State, later.Reason, later.Log
	}
	return s
}

// HookAnswer is one answer of a hook.
type HookAnswer struct {
	Name    string `json:"name"`
	Event   string `json:"on"`
	SHA256  string `json:"sha256"`           // of its program and arguments
	Number  int    `json:"number,omitempty"` // of the call that the hook judged
	Caller  int    `json:"caller,omitempty"` // of the calling script's call, as in ToolStarted
	Agent   string `json:"agent,omitempty"`  // that made the call; empty for the run's own
	Trusted bool   `json:"trusted,omitempty"`
	// Decision is pass, deny, rewrite, replace or more. Failed if there was no valid answer.
	Decision  string  `json:"decision"`
	Reason    string  `json:"reason,omitempty"`
	Context   string  `json:"context,omitempty"` // added for the model
	Message   string  `json:"message,omitempty"` // for people
	Stop      bool    `json:"stop,omitempty"`    // the run ends
	Before    string  `json:"before,omitempty"`  // the text before a rewrite or replacement
	After     string  `json:"after,omitempty"`
	Seconds   float64 `json:"seconds"`
	Continued bool    `json:"went_on,omitempty"` // it failed, and on_error allowed the run to continue
}

// Ref returns the reference of the call that the hook judged. It is zero if the hook judged no call.
func (d HookAnswer) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

// The decisions of hooks.
const (
	HookPass    = "pass"
	HookDeny    = "deny"
	HookRewrite = "rewrite"
	HookReplace = "replace"
	HookMore    = "more"
	HookFailed  = "failed"
)
