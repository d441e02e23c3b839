package mcp

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Server describes a server: one to Start, or one at URL.
type Server struct {
	Name  string   // in the job
	Tools []string // that may be called, by the server's own names; "*" for all
	Deny  []string // that may not be called all the same

	StartTimeout time.Duration // until all that is asked at the start is answered; 0 for a minute
	CallTimeout  time.Duration // of one call; 0 for 2 minutes
	Defer        bool          // a model is told of its tools when it asks

	// Start starts a new process that outlives ctx. It is called again if the first process does
	// not know the newest revision.
	Start func(ctx context.Context) (*Process, error)

	URL    string
	Client *http.Client // of NewClient, for URL

	// Observe receives a server's spontaneous actions, sequentially from the session's goroutines;
	// may be nil.
	Observe func(Notice)

	probe time.Duration // how long the newest revision is waited for; 0 for probeTime
}

// allTools in Server.Tools stands for all tools of the server.
const allTools = "*"

// Process is a started server's streams.
type Process struct {
	Output io.ReadCloser  // what the server says
	Input  io.WriteCloser // what is said to it
	// End kills the process with its children and waits. It is called once.
	End func() error
}

// Notice is a server's spontaneous action.
type Notice struct {
	Kind NoticeKind
	Why  string // of Ended
}

// NoticeKind is the kind of an action.
type NoticeKind string

// The kinds of notices. None changes the available tools.
const (
	ToolsChanged NoticeKind = "tools_changed" // it says that its tools are others now
	Ended        NoticeKind = "ended"         // it answers no calls any more; comes once
)

// Reason is why no session came about.
type Reason string

// The reasons, as in outcome extension_failed.
const (
	ReasonStart       Reason = "mcp_start"        // it did not start, or did not answer in time
	ReasonToolMissing Reason = "mcp_tool_missing" // it lacks a tool that the job names
	ReasonProtocol    Reason = "mcp_protocol"     // what it answers is not the protocol
)

// Error explains an unusable server. Its text has the server's name and the remedy.
type Error struct {
	Reason Reason
	Words  string
	Err    error // what caused it; may be nil
}

func (e *Error) Error() string { return e.Words }

func (e *Error) Unwrap() error { return e.Err }
