package team

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// child is an agent started by another.
type child struct {
	id, name string
	roleName string
	role     job.Role
	task     string
	paths    []string
	by       *Member // that started it
	member   *Member // by which it starts others
	agent    *worker.Agent
	model    string
	place    *confine.Place // of its copy; nil for none

	// Guarded by the team's lock.
	status   agents.Status
	closed   bool // resume_agent opens it again
	dropped  bool // its copy was removed
	mail     []string
	reserved agent.Used // its share that is not used yet
	mostUSD  float64    // that it might cost, with that
	spent    agent.Spent
	stop     func(by ending) // ends its turn; nil while it has none
	done     chan struct{}   // closed at the end of its turn
	leaving  bool            // its turn reads no message any more
	sent     int             // messages to it

	// Guarded by the merge lock.
	base   *gitops.ChangeSet // that its copy began with, or was merged at
	merged mergeState
}

// ending is why a turn of a child is ended by another agent, or by the runner.
type ending struct {
	status agents.Status
	reason string
}

// Error makes an ending the cause of a context's end.
func (e ending) Error() string { return "the agent was ended: " + e.status.State }

// begin starts a turn. The caller holds the lock.
func (c *child) begin() {
	ctx, cancel := context.WithCancelCause(c.by.ctx)
	c.status, c.leaving = agents.Status{State: agents.Running}, false
	c.stop, c.done = func(by ending) { cancel(by) }, make(chan struct{})
	done := c.done
	c.by.team.running.Go(func() {
		defer close(done)
		defer cancel(nil)
		c.turn(ctx)
	})
}

// crashed is the reason of a crashed agent; a separate warning has the details.
const crashed = "crash"

// mostWarned limits the error text in an agent's warning, in bytes.
const mostWarned = 500

// turn runs one turn of a child to its end.
func (c *child) turn(ctx context.Context) {
	status, reason := c.work(ctx)
	work := c.agent.Work()
	_ = c.by.team.options.Record.AppendBy(c.id, transcript.TypeAgentFinished, transcript.AgentFinished{Status: status.State, Reason: reason, Text: status.Text})
	t := c.by.team
	t.mu.Lock()
	defer t.mu.Unlock()
	c.status, c.stop, c.reserved, c.leaving = status, nil, agent.Used{}, false
	c.spent = work.Spent
	if status.State == agents.Errored && reason != crashed {
		t.options.Record.Warn("agent_errored", "The agent %s (%s) failed (%s): %s", c.name, c.roleName, reason, clip.Visible(status.Text, mostWarned))
	}
	if status.State != agents.Shutdown {
		c.by.news = append(c.by.news, notice{c, status})
	}
	t.tell()
}

// work has the child work until it ends, and says how it stands then.
func (c *child) work(ctx context.Context) (status agents.Status, reason string) {
	defer func() {
		if broken := recover(); broken != nil {
			c.by.team.options.Record.Warn("agent_panic", "The agent %s crashed: %v\n%s", c.name, broken, debug.Stack())
			status, reason = agents.Status{State: agents.Errored, Text: "It crashed. This is a fault of agent-ci, not of its task."}, crashed
		}
	}()
	work, err := c.agent.Run(ctx)
	if err == nil && work.Stopped == nil {
		return agents.Status{State: agents.Completed, Text: work.Summary}, ""
	}
	var ended ending
	if errors.As(context.Cause(ctx), &ended) {
		return ended.status, ended.reason
	}
	stop := work.Stopped
	if err != nil {
		stop = outcome.Of(ctx, err)
	}
	text := outcome.Shortened(c.by.team.options.Record.Redact(stop.Message))
	if work.Summary != "" {
		text += "\nIts last words: " + work.Summary
	}
	return agents.Status{State: agents.Errored, Text: text}, fmt.Sprintf("%s/%s", stop.Outcome, stop.Reason)
}

// end ends a child's turn and waits. The caller holds the lock before and after; end releases it
// while waiting.
func (c *child) end(by ending) {
	if c.stop == nil {
		return
	}
	c.stop(by)
	done := c.done
	c.by.team.mu.Unlock()
	<-done
	c.by.team.mu.Lock()
}

// started is the event of its start.
func (c *child) started() transcript.AgentStarted {
	l := c.agent.Limits()
	return transcript.AgentStarted{
		Name: c.name, Role: c.roleName, AskedBy: c.by.byName(), Model: c.model, Writes: c.role.Writes, Paths: c.paths,
		Turns: l.Turns, ToolCalls: l.Calls, Tokens: l.Tokens, CostUSD: l.CostUSD,
	}
}
