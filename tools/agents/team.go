package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/tools"
)

// Team is the other agents of a run, as one agent of it sees them: those that it started, and
// theirs. Every method may be called from several goroutines at once, and returns soon after its
// context has ended. An error that is a *Refusal is told to the model in its own words.
type Team interface {
	// Spawn starts an agent, and does not wait for it. The nickname may be empty.
	Spawn(ctx context.Context, order Order) (id, nickname string, err error)
	// Send gives an agent a message and starts a turn where it has none; with interrupt, the turn
	// that runs ends first. The submission names the message.
	Send(ctx context.Context, id, message string, interrupt bool) (submission string, err error)
	// Note leaves a message for an agent, which reads it in the turn that it has or in its next.
	Note(ctx context.Context, id, message string) error
	// Resume opens an agent again that was closed.
	Resume(ctx context.Context, id string) (Status, error)
	// Wait waits until one of the agents has ended its turn, or is not there. The statuses are of
	// those that have, and only of them; there are none when the time was up. Without ids it waits
	// for news of any agent that were not waited for yet.
	Wait(ctx context.Context, ids []string, timeout time.Duration) (statuses map[string]Status, timedOut bool, err error)
	// Close ends an agent and all that it started, and frees its place.
	Close(ctx context.Context, id string) (previous Status, err error)
	// Interrupt ends the turn that an agent has; it stays open.
	Interrupt(ctx context.Context, id string) (previous Status, err error)
	// List is the agents whose id begins with prefix, in the order in which they were started.
	List(prefix string) []Listed
	// Unmerged is, of the agents with these ids, those that have completed and whose changes were
	// neither taken over nor refused yet, in the order in which they completed; without ids, of all.
	Unmerged(ids []string) []string
	// Merge takes the change of an agent over into the tree of the one that calls. The result is
	// what the model is told of it; it has Failed where nothing was applied.
	Merge(ctx context.Context, id string) (tools.Result, error)
}

// Order is what an agent is started with.
type Order struct {
	Name        string   // the task_name of collaboration, which its id ends in; else empty
	Role        string   // empty for the role that is nobody's
	Message     string   // its task
	Fork        bool     // it knows the conversation of the one that starts it
	Model       string   // empty for that of the role, or of the one that starts it
	Effort      string   // likewise
	ServiceTier string   // likewise
	Paths       []string // of its own: what it may change; empty for all
}

// Listed is an agent in the list of a team.
type Listed struct {
	Name     string `json:"agent_name"`
	Status   Status `json:"agent_status"`
	LastTask string `json:"last_task_message,omitempty"`
}

// The states of an agent.
const (
	PendingInit = "pending_init"
	Running     = "running"
	Interrupted = "interrupted"
	Shutdown    = "shutdown"
	NotFound    = "not_found"
	Completed   = "completed"
	Errored     = "errored"
)

// Status is how an agent stands. In JSON it is the state, or {state: text} for those that end with
// words: its last message, null for none, or what went wrong.
type Status struct {
	State string
	Text  string // of completed and errored
}

// Ended says whether the agent has no turn that runs or will run by itself.
func (s Status) Ended() bool { return s.State != PendingInit && s.State != Running }

// MarshalJSON writes the status in the form that models know.
func (s Status) MarshalJSON() ([]byte, error) {
	switch {
	case s.State == Completed && s.Text == "":
		return encoded(map[string]any{s.State: nil})
	case s.State == Completed, s.State == Errored:
		return encoded(map[string]string{s.State: s.Text})
	}
	return encoded(s.State)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Status) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &s.State) == nil {
		s.Text = ""
		return nil
	}
	var worded map[string]*string
	if err := json.Unmarshal(data, &worded); err != nil || len(worded) != 1 {
		return fmt.Errorf("read the status of an agent: %.100s is neither a state nor one state with words", data)
	}
	for state, text := range worded {
		*s = Status{State: state}
		if text != nil {
			s.Text = *text
		}
	}
	return nil
}

// Refusal is why something was not done, in words for the model.
type Refusal struct{ Words string }

func (r *Refusal) Error() string { return r.Words }

// Refusef is a refusal in the words of a format.
func Refusef(format string, values ...any) error {
	return &Refusal{fmt.Sprintf(format, values...)}
}

// Unknown refuses an id that no agent has.
func Unknown(id string) error {
	return Refusef("There is no agent %s. Use the id of one that you started.", clip.Visible(id, 100))
}

// Role is a kind of agent that can be started.
type Role struct {
	Name string
	Text string // what it is for and may do, in a sentence for the model
}
