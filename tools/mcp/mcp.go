package mcp

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Server describes a server: a process to start, or a remote server at a URL.
type Server struct {
	Name  string   // the server's name in the job
	Tools []string // allowed tools, by the server's own names; "*" for all
	Deny  []string // tools that are not allowed, even if Tools lists them

	StartTimeout time.Duration // for the start and all initial requests; 0 for a minute
	CallTimeout  time.Duration // for one call; 0 for 2 minutes

	// Start starts a new process, which outlives ctx. It is called again if the first process does
	// not know the newest revision. Nil means that the server is at URL.
	Start func(ctx context.Context) (*Process, error)

	URL    string
	Client *http.Client // for URL, from NewClient

	// Observe receives notices about the server. Calls do not overlap. It may be nil.
	Observe func(Notice)

	probe time.Duration // longest wait for an answer to newestRevision; 0 for probeTime
}

// allTools in Server.Tools means all tools of the server.
const allTools = "*"

// Process is a started server's streams.
type Process struct {
	Output io.ReadCloser  // the server's messages
	Input  io.WriteCloser // messages to the server
	// End kills the process with its children and waits. It is called once.
	End func() error
}

// Notice reports a change of a server that no call caused.
type Notice string

// The notices. None changes the available tools.
const (
	ToolsChanged Notice = "tools_changed" // the server reports that its tools have changed
	Ended        Notice = "ended"         // the session has ended; reported once
)

// Reason is the reason why a session could not be opened.
type Reason string

// The reasons, as in outcome extension_failed.
const (
	ReasonStart       Reason = "mcp_start"        // the server did not start, or did not answer in time
	ReasonToolMissing Reason = "mcp_tool_missing" // the server lacks a tool that the job names
	ReasonProtocol    Reason = "mcp_protocol"     // the server violates the protocol
)

// Error explains an unusable server. Its text has the server's name and the remedy.
type Error struct {
	Reason Reason
	Words  string
	Err    error // the cause; may be nil
}

// Error returns the explanation for people.
func (e *Error) Error() string { return e.Words }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }
