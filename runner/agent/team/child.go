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
	assignment
	starter *member
	ownTeam *member // the agents that it started
	agent   *worker.Agent

	// Guarded by the team's lock.
	turn
	account
	status       agents.Status
	closed       bool     // resume_agent opens it again
	messages     []string // not yet told to it
	messagesSent int      // messages to it

	copyOfTree
}

// assignment is what a child is and has to do.
type assignment struct {
	id, name string
	roleName string
	role     job.Role
	task     string
	paths    []string
	model    string
}

// turn is a child's turn.
type turn struct {
	stopTurn   func(by ending) // ends it; nil while there is none
	done       chan struct{}   // closed at its end
	turnEnding bool            // it reads no message any more
}

// account is a child's budget.
type account struct {
	reserved agent.Used // its share that is not used yet
	maxUSD   float64    // that it might cost, with that
	spent    agent.Spent
}

// copyOfTree is a child's copy of its starter's tree.
type copyOfTree struct {
	place       *confine.Place // nil for none
	copyRemoved bool           // guarded by the team's lock

	// Guarded by the merge lock.
	base       *gitops.ChangeSet // that it began with, or was merged at
	mergeState mergeState
}

// ending is why a turn of a child is ended by another agent, or by the runner.
type ending struct {
	status agents.Status
	reason string
}

// Error makes an ending the cause of a context's end.
func (e ending) Error() string { return "the agent was ended: " + e.status.State }

// beginTurn starts a turn. The caller holds the lock.
func (c *child) beginTurn() {
	ctx, cancel := context.WithCancelCause(c.starter.ctx)
	c.status, c.turnEnding = agents.Status{State: agents.Running}, false
	c.stopTurn, c.done = func(by ending) { cancel(by) }, make(chan struct{})
	done := c.done
	c.starter.team.running.Go(func() {
		defer close(done)
		defer cancel(nil)
		c.runTurn(ctx)
	})
}

// crashed is the reason of a crashed agent; a separate warning has the details.
const crashed = "crash"

// maxWarningBytes limits the error text in an agent's warning, in bytes.
const maxWarningBytes = 500

// runTurn runs one turn of a child to its end.
func (c *child) runTurn(ctx context.Context) {
	status, reason := c.work(ctx)
	work := c.agent.Work()
	_ = c.starter.team.options.Record.AppendBy(c.id, transcript.TypeAgentFinished, transcript.AgentFinished{Status: status.State, Reason: reason, Text: status.Text})
	t := c.starter.team
	t.mu.Lock()
	defer t.mu.Unlock()
	c.status, c.stopTurn, c.reserved, c.turnEnding = status, nil, agent.Used{}, false
	c.spent = work.Spent
	if status.State == agents.Errored && reason != crashed {
		t.options.Record.Warn("agent_errored", "The agent %s (%s) failed (%s): %s", c.name, c.roleName, reason, clip.Visible(status.Text, maxWarningBytes))
	}
	if status.State != agents.Shutdown {
		c.starter.news = append(c.starter.news, notice{c, status})
	}
	t.notifyWaiters()
}

// work has the child work until it ends, and says how it stands then.
func (c *child) work(ctx context.Context) (status agents.Status, reason string) {
	defer func() {
		if broken := recover(); broken != nil {
			c.starter.team.options.Record.Warn("agent_panic", "The agent %s crashed: %v\n%s", c.name, broken, debug.Stack())
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
	text := outcome.ShortenNames(c.starter.team.options.Record.Redact(stop.Message))
	if work.Summary != "" {
		text += "\nIts last words: " + work.Summary
	}
	return agents.Status{State: agents.Errored, Text: text}, fmt.Sprintf("%s/%s", stop.Outcome, stop.Reason)
}

// endTurn ends a child's turn and waits. The caller holds the lock before and after; end releases it
// while waiting.
func (c *child) endTurn(by ending) {
	if c.stopTurn == nil {
		return
	}
	c.stopTurn(by)
	done := c.done
	c.starter.team.mu.Unlock()
	<-done
	c.starter.team.mu.Lock()
}

// startEvent is the event of its start.
func (c *child) startEvent() transcript.AgentStarted {
	l := c.agent.Limits()
	return transcript.AgentStarted{
		Name: c.name, Role: c.roleName, AskedBy: c.starter.starterName(), Model: c.model, Writes: c.role.Writes, Paths: c.paths,
		Turns: l.Turns, ToolCalls: l.Calls, Tokens: l.Tokens, CostUSD: l.CostUSD,
	}
}
