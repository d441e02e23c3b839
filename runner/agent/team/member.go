package team

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/tools/agents"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Begin marks the agent as working, so that it can start others, until End.
func (m *member) Begin(ctx context.Context) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	m.ctx, m.waitUntil = ctx, time.Time{}
}

// findForModel returns the agent id below m, or an error for the model if there is none. The caller holds the lock.
func (m *member) findForModel(id string) (*child, error) {
	if c := m.findBelow(id); c != nil {
		return c, nil
	}
	return nil, agents.Unknown(id)
}

// Send sends a message to an agent, and starts a turn of the agent if it is idle. interrupt stops its current turn
// first. Send returns an ID for the message.
func (m *member) Send(ctx context.Context, id, message string, interrupt bool) (submission string, err error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	c, err := m.findForModel(id)
	if err != nil {
		return "", err
	}
	if c.closed {
		return "", agents.Refusef("%s is closed. Open it by resume_agent, or start another agent.", c.id)
	}
	if interrupt {
		c.endTurn(turnStop{status: agents.Status{State: agents.Interrupted}})
		m.forgetNews(c)
	}
	text := message
	if m.usesScripts {
		text = agents.Letter{Kind: agents.NewTask, To: c.id, From: m.id(), Payload: message}.String()
	}
	startedTurn, replayed := t.recordedOrder.recordedSend(ctx)
	canReceive := func() bool {
		isIdle := c.stopTurn == nil
		return !c.turnEnding && (isIdle || !startedTurn) // in a replay, the recorded turn starts only when the agent is idle
	}
	if err := t.await(ctx, canReceive); err != nil {
		return "", err
	}
	if c.starter.ctx == nil {
		return "", agents.Refusef("%s was started by another agent, which has ended. Start an agent of your own.", c.id)
	}
	c.messagesSent++
	submission = fmt.Sprintf("%s-%d", c.id, c.messagesSent)
	isWorking := c.stopTurn != nil
	wasWorkingInRecord := replayed && !startedTurn
	if isWorking || wasWorkingInRecord {
		c.messages = append(c.messages, text)
		return submission, nil
	}
	if err := c.reserveAgain(); err != nil {
		return "", err
	}
	c.messages = append(c.messages, text)
	m.forgetNews(c)
	if err := t.options.Record.AppendBy(c.id, c.startEvent()); err != nil {
		return "", err
	}
	c.mergeState = unmerged
	c.beginTurn()
	return submission, nil
}

// Note sends a message to an agent without starting a turn.
func (m *member) Note(_ context.Context, id, message string) error {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	c, err := m.findForModel(id)
	if err != nil {
		return err
	}
	c.messages = append(c.messages, agents.Letter{Kind: agents.Plain, To: c.id, From: m.id(), Payload: message}.String())
	return nil
}

// Resume reopens a closed agent and returns its status.
func (m *member) Resume(_ context.Context, id string) (agents.Status, error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	c, err := m.findForModel(id)
	switch {
	case err != nil:
		return agents.Status{}, err
	case !c.closed:
		return c.status, nil
	case c.copyRemoved:
		return agents.Status{}, agents.Refusef("The copy of the tree that %s worked on is gone. Start another agent.", c.id)
	case t.openCount() >= t.job().Agents.MaxOpen:
		return agents.Status{}, t.tooManyAgentsError()
	}
	c.closed = false
	if c.status.State == agents.Shutdown {
		c.status = agents.Status{State: agents.PendingInit}
	}
	return c.status, nil
}

// Wait waits until one of the agents ids has ended, or until timeout. ended has the statuses of those that have ended.
// Without ids it waits for any news, and ended is nil.
func (m *member) Wait(ctx context.Context, ids []string, timeout time.Duration) (ended map[string]agents.Status, timedOut bool, err error) {
	t := m.team
	waitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recordedOrder.isInterruptedTask(ctx) {
		return nil, false, agents.Refusef("The run was over, or killed, while the agent worked.")
	}
	if recorded, replayed := t.recordedOrder.recordedWait(ctx); replayed {
		return m.replayWait(waitCtx, recorded, ids)
	}
	if len(ids) == 0 {
		_ = t.await(waitCtx, func() bool { return len(m.news) > 0 || len(m.workingBelow()) == 0 })
		return nil, len(m.news) == 0, ctx.Err()
	}
	_ = t.await(waitCtx, func() bool { return len(m.endedStatuses(ids)) > 0 })
	ended = m.endedStatuses(ids)
	m.forgetReported(ended)
	return ended, len(ended) == 0, ctx.Err()
}

// endedStatuses returns the statuses of the agents among ids that have ended or do not exist, by ID. The caller holds
// the lock.
func (m *member) endedStatuses(ids []string) map[string]agents.Status {
	statuses := map[string]agents.Status{}
	for _, id := range ids {
		switch c := m.findBelow(id); {
		case c == nil:
			statuses[id] = agents.Status{State: agents.NotFound}
		case c.status.Ended():
			statuses[id] = c.status
		}
	}
	return statuses
}

// forgetReported removes the notices about agents whose statuses the result of a wait reports. The caller holds the lock.
func (m *member) forgetReported(statuses map[string]agents.Status) {
	for id := range statuses {
		if c := m.findBelow(id); c != nil {
			m.forgetNews(c)
		}
	}
}

// forgetNews removes notices about a child that the agent has not received yet. The caller holds the lock.
func (m *member) forgetNews(c *child) {
	m.news = slices.DeleteFunc(m.news, func(n endNotice) bool { return n.child == c })
}

// Close stops and closes an agent and all agents below it. It returns the agent's status before.
func (m *member) Close(_ context.Context, id string) (previous agents.Status, err error) {
	return m.stopTurns(id, turnStop{agents.Status{State: agents.Shutdown}, "closed"}, true)
}

// Interrupt stops the current turn of an agent, which stays open. It returns the agent's status before.
func (m *member) Interrupt(_ context.Context, id string) (previous agents.Status, err error) {
	return m.stopTurns(id, turnStop{status: agents.Status{State: agents.Interrupted}}, false)
}

// stopTurns stops the current turn of an agent and returns the agent's status before. If closes is true, it also closes
// the agent, and does the same to all agents below it.
func (m *member) stopTurns(id string, stop turnStop, closes bool) (previous agents.Status, err error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	c, err := m.findForModel(id)
	if err != nil {
		return agents.Status{}, err
	}
	previous = c.status
	stopped := []*child{c}
	if closes {
		stopped = append(stopped, c.descendants()...)
	}
	for _, each := range stopped {
		each.endTurn(stop)
		each.closed = each.closed || closes
	}
	m.forgetNews(c)
	t.notifyWaiters()
	return previous, nil
}

// closeAndRemove closes an ended agent and removes its copy of the tree, if it has one. The caller holds the lock.
func (c *child) closeAndRemove() {
	c.closed = true
	if c.place == nil || c.copyRemoved {
		return
	}
	c.copyRemoved = true
	if err := c.starter.team.options.Sandboxes.Remove(*c.place); err != nil {
		c.starter.team.options.Record.Warn("agent_copy", "The copy of the work tree of the agent %s could not be removed: %v.", c.name, err)
	}
}

// List returns the agents below m whose IDs begin with prefix.
func (m *member) List(prefix string) (all []agents.Listed) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	for _, c := range m.team.children {
		if m.isAbove(c) && strings.HasPrefix(c.id, prefix) {
			all = append(all, agents.Listed{Name: c.id, Status: c.status, LastTask: c.task})
		}
	}
	return all
}

// givesTasks reports whether the model has a tool such as OpenCode's task, which starts an agent and waits for its end.
func (t *team) givesTasks() bool {
	family := t.job().Model.Tools
	return family != "" && len(dialect.NamesInFamily(family, dialect.Leads)) > 0
}

// lacksCloseTool reports whether the model has no tool for closing agents.
func (t *team) lacksCloseTool() bool { return t.root.usesScripts || t.givesTasks() }

// openCount returns the number of open agents. Ended agents count only if the model can close them. The caller holds
// the lock.
func (t *team) openCount() (n int) {
	for _, c := range t.children {
		closesItself := t.lacksCloseTool() && c.status.Ended()
		if !c.closed && !closesItself {
			n++
		}
	}
	return n
}

// tooManyAgentsError returns the error that tells the model that no further agent may start.
func (t *team) tooManyAgentsError() error {
	if t.lacksCloseTool() {
		return agents.Refusef("%d agents are at work, which is as many as there may be (agents.most). Wait until one has ended.", t.openCount())
	}
	return agents.Refusef("%d agents are open, which is as many as there may be (agents.most). Close one that has ended, by close_agent, before you start another.", t.openCount())
}

// Settle waits, when the agent ends, until the agents below it have ended. It waits up to agents.wait, but not beyond
// the time at which limits.time leaves one last turn. news means that there is news and the agent has a turn left for
// it. Otherwise the agent's turn ends and takes no more messages.
func (m *member) Settle(ctx context.Context, hasTurnLeft bool) (news bool, err error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recordedOrder != nil {
		return m.replaySettle(ctx, hasTurnLeft)
	}
	hasMessages := m.child != nil && len(m.child.messages) > 0
	if hasMessages && hasTurnLeft {
		return true, nil
	}
	if m.waitUntil.IsZero() {
		m.waitUntil = time.Now().Add(time.Duration(t.job().Agents.Wait))
	}
	until := m.waitUntil
	if lastTurnAt, limited := m.agent.Limits().LastTurnThreshold(); limited && lastTurnAt.Before(until) {
		until = lastTurnAt
	}
	waitCtx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	_ = t.await(waitCtx, func() bool { return len(m.workingBelow()) == 0 })
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if len(m.news) > 0 && hasTurnLeft {
		return true, nil
	}
	if m.child != nil {
		m.child.turnEnding = true
	}
	return false, nil
}

// workingBelow returns the agents below this one, at any depth, that are working. The caller holds the lock.
func (m *member) workingBelow() []*child {
	return slices.DeleteFunc(slices.Clone(m.team.children), func(c *child) bool { return c.stopTurn == nil || !m.isAbove(c) })
}

// End stops and closes the agents below this one and removes their copies of the tree. It warns about work that is
// lost.
func (m *member) End() {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended []string
	working := m.workingBelow()
	for _, c := range working { // stop all before waiting, since a call of one may wait for a call of another
		c.stopTurn(turnStop{agents.Status{State: agents.Shutdown}, "not_waited_for"})
	}
	for _, c := range working {
		c.endTurn(turnStop{agents.Status{State: agents.Shutdown}, "not_waited_for"})
		if c.status.State == agents.Shutdown {
			ended = append(ended, c.name)
		}
	}
	var lost []string
	for _, c := range t.children {
		if !m.isAbove(c) {
			continue
		}
		if hasUnmerged := c.place != nil && c.mergeState != merged; hasUnmerged && !c.closed {
			lost = append(lost, c.name)
		}
		c.closeAndRemove()
	}
	if len(ended) > 0 {
		t.options.Record.Warn("agents_ended", "The agent finished while others that it had started still worked (%s); they were stopped, and their work is not in the change.", strings.Join(ended, ", "))
	}
	if len(lost) > 0 {
		t.options.Record.Warn("agents_ended", "Changes of other agents on copies of the work tree (%s) were not merged, and are not in the change.", strings.Join(lost, ", "))
	}
	m.ctx, m.news = nil, nil
}
