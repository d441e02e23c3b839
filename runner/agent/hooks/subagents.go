package hooks

import (
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Subagent describes an agent that another agent started.
type Subagent struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Role    string   `json:"role"`
	AskedBy string   `json:"asked_by"`
	Task    string   `json:"task,omitempty"`
	Writes  string   `json:"writes,omitempty"`
	Paths   []string `json:"paths,omitempty"`
}

// SubagentStart asks the hooks whether a subagent may start. refusal tells the starting agent why not, and is ""
// if it may start. added is context for the subagent.
func (h *Hooks) SubagentStart(ctx context.Context, a Subagent) (refusal, added string, err error) {
	q := question{call: transcript.CallRef{Agent: a.ID}, eventInput: map[string]any{"agent_type": a.Role, "agent": a}}
	contexts, err := h.askUntilRefused(ctx, job.OnSubagentStart, q, func(hook Hook, r reply) error {
		refusal = hook.refusalText(r)
		return nil
	})
	return refusal, strings.Join(contexts, "\n\n"), err
}

// SubagentStop reports the end of a subagent and its last message to hooks. If a hook refuses, it returns an
// error that ends the run.
func (h *Hooks) SubagentStop(ctx context.Context, a Subagent, lastMessage string) error {
	_, err := h.askEvent(ctx, job.OnSubagentStop, question{
		call:       transcript.CallRef{Agent: a.ID},
		eventInput: map[string]any{"agent_type": a.Role, "agent": a, "stop_hook_active": false, "last_assistant_message": lastMessage},
	}, "what the agent found is not taken")
	return err
}
