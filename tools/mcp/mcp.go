package mcp

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Server is a server to hold a session with: one that Start starts, or one at URL.
type Server struct {
	Name  string   // in the job
	Tools []string // that may be called, by the server's own names; AllTools for all
	Deny  []string // that may not be called all the same

	Protocol     string        // a revision, or ProtocolAuto, which "" means too
	StartTimeout time.Duration // until all that is asked at the start is answered; 0 for a minute
	CallTimeout  time.Duration // of one call; 0 for 2 minutes
	Defer        bool          // a model is told of its tools when it asks

	// Start starts a fresh process of the server; the process lives on when ctx ends. It is
	// called a second time where the first process does not know the newest revision.
	Start func(ctx context.Context) (*Process, error)

	URL    string
	Client *http.Client // for URL; NewClient makes one that keeps to the host

	// Observe is told what a server does by itself. It is called from goroutines of the
	// session, one at a time, and may be nil.
	Observe func(Notice)

	probe time.Duration // how long the newest revision is waited for; 0 for probeTime
}

// AllTools in Server.Tools stands for all tools of the server.
const AllTools = "*"

// ProtocolAuto asks a server which revision it speaks, the newest first.
const ProtocolAuto = "auto"

// Process is a server that was started, by its two ends.
type Process struct {
	Output io.ReadCloser  // what the server says
	Input  io.WriteCloser // what is said to it
	// End ends all of it, what it started too, and waits for that. It is called once.
	End func() error
}

// Notice is something that a server did by itself.
type Notice struct {
	Server string
	Kind   NoticeKind
	Why    string // of Ended
}

// NoticeKind is what a server did.
type NoticeKind string

// The kinds of notices. None of them changes which tools there are.
const (
	ToolsChanged NoticeKind = "tools_changed" // it says that its tools are others now
	Ended        NoticeKind = "ended"         // it answers no calls any more; comes once
)

// Reason is why no session came about.
type Reason string

// The reasons; they are those of outcome extension_failed.
const (
	ReasonStart       Reason = "mcp_start"        // it did not start, or did not answer in time
	ReasonToolMissing Reason = "mcp_tool_missing" // it lacks a tool that the job names
	ReasonProtocol    Reason = "mcp_protocol"     // what it answers is not the protocol
)

// Error is why a server cannot be used. Its text names the server and ends in what to do.
type Error struct {
	Reason Reason
	Server string
	Words  string
	Err    error // what caused it; may be nil
}

func (e *Error) Error() string { return e.Words }

func (e *Error) Unwrap() error { return e.Err }
