package eventlog

import (
	"encoding/json"
	"time"
)

// Version is the version of the log format.
const Version = 1

// Event is one line of transcript.jsonl. Lines list the fields in this order.
type Event struct {
	V     int             `json:"v"`
	Seq   int64           `json:"seq"`  // from 1, without gaps
	Time  time.Time       `json:"time"` // RFC 3339 with nanoseconds, UTC
	Agent string          `json:"agent"`
	Type  Type            `json:"type"`
	Data  json.RawMessage `json:"data"`
	// Prev is the SHA-256 (hex) of the line before, without its newline. In the first event it is
	// 64 zeros.
	Prev string `json:"prev"`
}

// Subagent returns the event's agent, or "" for the run's own agent.
func (e Event) Subagent() string {
	if e.Agent == MainAgent {
		return ""
	}
	return e.Agent
}

// Type is the name of an event type. New types may be added; readers must skip unknown ones.
type Type string
