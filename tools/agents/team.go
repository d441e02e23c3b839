package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/tools"
)

// Team controls the subagents of one agent, and those that they started. Its methods are safe for concurrent use
// and return soon after their context ends. The model gets the text of a *Refusal unchanged.
type Team interface {
	// Spawn starts a subagent, and does not wait for it.
	Spawn(ctx context.Context, order Order) (id, nickname string, err error)
	// Send gives a subagent a message and starts a turn if needed. interrupt first ends the current
	// turn. submission identifies the message.
	Send(ctx context.Context, id, message string, interrupt bool) (submission string, err error)
	// Note leaves a message for a subagent's current or next turn.
	Note(id, message string) error
	// Resume reopens a closed subagent.
	Resume(id string) (Status, error)
	// Wait waits until one of the subagents ids has ended its turn or is missing. It returns the statuses of such agents,
	// or none after the timeout. Without ids it waits for unread news of any subagent.
	Wait(ctx context.Context, ids []string, timeout time.Duration) (statuses map[string]Status, timedOut bool, err error)
	// Close ends a subagent with all that it started, and frees its place.
	Close(id string) (previous Status, err error)
	// Interrupt ends a subagent's current turn and keeps it open.
	Interrupt(id string) (previous Status, err error)
	// List returns the subagents with an id prefix, in order of their start.
	List(prefix string) []Listed
	// Unmerged returns the completed subagents among ids whose changes were neither merged nor in conflict. Without ids
	// it looks at all subagents.
	Unmerged(ids []string) []string
	// Merge merges a subagent's change into the caller's tree, and returns the result for the model. If the result is
	// Failed, nothing was changed.
	Merge(ctx context.Context, id string) (tools.Result, error)
}

// Order describes a new subagent.
type Order struct {
	Name        string   // the task_name of Collaboration tools, with which the ID ends; otherwise empty
	Role        string   // empty for no role
	Message     string   // its task
	Fork        bool     // the subagent knows its starter's conversation
	Model       string   // empty for the model of the role, or else of the starter
	Effort      string   // likewise
	ServiceTier string   // likewise
	Paths       []string // paths that it may change; empty for all
}

// Listed is a subagent in the list of a team.
type Listed struct {
	Name     string `json:"agent_name"`
	Status   Status `json:"agent_status"`
	LastTask string `json:"last_task_message,omitempty"`
}

// The states of a subagent.
const (
	PendingInit = "pending_init"
	Running     = "running"
	Interrupted = "interrupted"
	Shutdown    = "shutdown"
	NotFound    = "not_found"
	Completed   = "completed"
	Errored     = "errored"
)

// Status is a subagent's status. In JSON it is the state, or {state: text} for those with a last
// message (null for none) or error.
type Status struct {
	State string
	Text  string // last message or error, in the states Completed and Errored
}

// Ended reports whether the subagent has no current or pending turn.
func (s Status) Ended() bool { return s.State != PendingInit && s.State != Running }

// MarshalJSON writes the status in the form that models know.
func (s Status) MarshalJSON() ([]byte, error) {
	switch {
	case s.State == Completed && s.Text == "":
		return plainjson.Marshal(map[string]any{s.State: nil})
	case s.State == Completed, s.State == Errored:
		return plainjson.Marshal(map[string]string{s.State: s.Text})
	}
	return plainjson.Marshal(s.State)
}

// Refusal is an error whose text the model gets.
type Refusal struct{ Words string }

func (r *Refusal) Error() string { return r.Words }

// Refusef returns a formatted refusal.
func Refusef(format string, values ...any) error {
	return &Refusal{fmt.Sprintf(format, values...)}
}

// Unknown returns the refusal for an unknown ID.
func Unknown(id string) error {
	return Refusef("There is no agent %s. Use the id of one that you started.", clip.Visible(id, 100))
}

// Role is a kind of subagent.
type Role struct {
	Name string
	Text string // what it is for and may do, in a sentence for the model
}
