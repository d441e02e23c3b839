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
	childTask
	starter *member
	ownTeam *member // the team as the child sees it
	agent   *worker.Agent

	// Guarded by the team's lock.
	turn
	childBudget
	status       agents.Status
	closed       bool     // closed until resume_agent opens it
	messages     []string // messages that it has not received yet
	messagesSent int      // number of messages sent to it

	copyOfTree
}

// childTask is a child's identity, role and task.
type childTask struct {
	id, name string
	roleName string
	role     job.Role
	task     string
	paths    []string
	model    string
}

// turn is the current turn of a child.
type turn struct {
	stopTurn   func(by turnStop) // stops the turn; nil if there is none
	turnDone   chan struct{}     // closed when the turn has ended
	turnEnding bool              // the turn is ending and reads no more messages
}

// childBudget is a child's budget.
type childBudget struct {
	reservedShare agent.Used  // the share reserved for its current turn
	maxUSD        float64     // the most that it can cost in all, in US dollars
	spent         agent.Spent // use in finished turns
}

// copyOfTree is a child's copy of its starter's tree.
type copyOfTree struct {
	place       *confine.Place // nil if the child has no copy
	copyRemoved bool           // guarded by the team's lock

	// Guarded by the merge lock.
	mergedState *gitops.ChangeSet // state of the copy at its start or last merge
	mergeState  mergeState
}

// turnStop is why another agent or the runner stops a turn of a child.
type turnStop struct {
	status agents.Status
	reason string
}

// Error lets a turnStop be the cause of a cancelled context.
func (e turnStop) Error() string { return "the agent was ended: " + e.status.State }

// beginTurn starts a turn of the child in the background. The caller holds the lock.
func (c *child) beginTurn() {
	ctx, cancel := context.WithCancelCause(c.starter.ctx)
	c.status, c.turnEnding = agents.Status{State: agents.Running}, false
	c.stopTurn, c.turnDone = func(by turnStop) { cancel(by) }, make(chan struct{})
	done := c.turnDone
	c.starter.team.running.Go(func() {
		defer close(done)
		defer cancel(nil)
		c.runTurn(ctx)
	})
}

// crashed is the recorded reason of an agent that crashed. A separate warning has the details.
const crashed = "crash"

// maxWarningBytes limits the error text in an agent's warning, in bytes.
const maxWarningBytes = 500

// runTurn runs one turn of a child, records its end, and tells its starter.
func (c *child) runTurn(ctx context.Context) {
	status, reason := c.work(ctx)
	work := c.agent.Work()
	_ = c.starter.team.options.Record.AppendBy(c.id, transcript.AgentFinished{Status: status.State, Reason: reason, Text: status.Text})
	t := c.starter.team
	t.mu.Lock()
	defer t.mu.Unlock()
	c.status, c.stopTurn, c.reservedShare, c.turnEnding = status, nil, agent.Used{}, false
	c.spent = work.Spent
	if status.State == agents.Errored && reason != crashed {
		t.options.Record.Warn("agent_errored", "The agent %s (%s) failed (%s): %s", c.name, c.roleName, reason, clip.Visible(status.Text, maxWarningBytes))
	}
	if status.State != agents.Shutdown {
		c.starter.news = append(c.starter.news, endNotice{c, status})
	}
	t.notifyWaiters()
}

// work runs the child until its turn ends. It returns the child's status then. reason is why the turn failed or was
// stopped, or "".
func (c *child) work(ctx context.Context) (status agents.Status, reason string) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			c.starter.team.options.Record.Warn("agent_panic", "The agent %s crashed: %v\n%s", c.name, panicValue, debug.Stack())
			status, reason = agents.Status{State: agents.Errored, Text: "It crashed. This is a fault of agent-ci, not of its task."}, crashed
		}
	}()
	work, err := c.agent.Run(ctx)
	if err == nil && work.BudgetStop == nil {
		return agents.Status{State: agents.Completed, Text: work.Summary}, ""
	}
	var ended turnStop
	if errors.As(context.Cause(ctx), &ended) {
		return ended.status, ended.reason
	}
	stop := work.BudgetStop
	if err != nil {
		stop = outcome.ForError(ctx, err)
	}
	text := outcome.ShortenNames(c.starter.team.options.Record.Redact(stop.Message))
	if work.Summary != "" {
		text += "\nIts last words: " + work.Summary
	}
	return agents.Status{State: agents.Errored, Text: text}, fmt.Sprintf("%s/%s", stop.Outcome, stop.Reason)
}

// endTurn stops the child's turn, if there is one, and waits for its end. The caller holds the lock, which endTurn
// releases while it waits.
func (c *child) endTurn(stop turnStop) {
	if c.stopTurn == nil {
		return
	}
	c.stopTurn(stop)
	done := c.turnDone
	c.starter.team.mu.Unlock()
	<-done
	c.starter.team.mu.Lock()
}

// startEvent returns the event that records the start of a turn.
func (c *child) startEvent() transcript.AgentStarted {
	l := c.agent.Limits()
	return transcript.AgentStarted{
		Name: c.name, Role: c.roleName, StartedBy: c.starter.starterName(), Model: c.model, Writes: c.role.Writes, Paths: c.paths,
		Turns: l.Turns, ToolCalls: l.Calls, Tokens: l.Tokens, CostUSD: l.CostUSD,
	}
}
