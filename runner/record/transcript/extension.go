package transcript

// MCPServer is the state of an MCP server.
type MCPServer struct {
	Name     string `json:"name"`               // in the job
	State    string `json:"state"`              // ready, failed, ended, changed
	Command  string `json:"command,omitempty"`  // of a server that is started here
	Host     string `json:"host,omitempty"`     // and port, of one at an address
	Revision string `json:"revision,omitempty"` // of the protocol, that was spoken
	// Server and Version are the server's own name and version.
	Server  string    `json:"server,omitempty"`
	Version string    `json:"version,omitempty"`
	Tools   []MCPTool `json:"tools,omitempty"`
	Why     string    `json:"why,omitempty"` // of a state other than ready
	Seconds float64   `json:"seconds"`       // until then, from its start
	Log     string    `json:"log,omitempty"` // file below the run directory with its standard error
	// File is the whole list of its tools as it gave it, below the run directory, and SHA256
	// the digest of the file.
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// MCPTool is a server's tool offered to the model.
type MCPTool struct {
	Name   string `json:"name"`   // for the model
	Tool   string `json:"tool"`   // the server's own name
	SHA256 string `json:"sha256"` // of its schema as the server gave it
	// Unchecked names the part of the schema without a check of arguments.
	Unchecked string `json:"unchecked,omitempty"`
}

// The states of an MCP server.
const (
	MCPReady   = "ready"
	MCPFailed  = "failed"  // it did not come, or lacks a tool
	MCPEnded   = "ended"   // while it was in use
	MCPChanged = "changed" // it says that its tools are others now, which changes nothing
)

// Hook is one answer of a hook.
type Hook struct {
	Name    string `json:"name"`
	On      string `json:"on"`
	SHA256  string `json:"sha256"`           // of its program and arguments
	Number  int    `json:"number,omitempty"` // of the call that it was asked about
	Caller  int    `json:"caller,omitempty"` // of a call that a script made, as in ToolStarted
	Agent   string `json:"agent,omitempty"`  // that made the call; empty for the one of the run
	Trusted bool   `json:"trusted,omitempty"`
	// Decision is pass, deny, rewrite, replace, more, or failed: no valid answer came.
	Decision string  `json:"decision"`
	Reason   string  `json:"reason,omitempty"`
	Context  string  `json:"context,omitempty"` // that it added for the model
	Message  string  `json:"message,omitempty"` // for people
	Stop     bool    `json:"stop,omitempty"`    // it ends the run
	Before   string  `json:"before,omitempty"`  // of what was rewritten or replaced
	After    string  `json:"after,omitempty"`
	Seconds  float64 `json:"seconds"`
	WentOn   bool    `json:"went_on,omitempty"` // it failed, and on_error let the run go on
}

// Ref identifies the hook's call, or is zero.
func (d Hook) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

// The decisions of hooks.
const (
	HookPass    = "pass"
	HookDeny    = "deny"
	HookRewrite = "rewrite"
	HookReplace = "replace"
	HookMore    = "more"
	HookFailed  = "failed"
)
