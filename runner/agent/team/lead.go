package team

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
)

var _ assembly.Team = (*teamAgent)(nil)

// Tools returns the model's tools for starting and managing subagents, or nil at the deepest level.
func (a *teamAgent) Tools() []tools.Tool {
	limits := a.team.job().Agents
	if a.depth >= limits.Depth {
		return nil
	}
	setup := agents.Setup{Team: a, Roles: a.team.roles(), MaxAgents: limits.MaxOpen}
	switch {
	case a.usesScripts:
		return agents.Collaboration(setup)
	case a.team.givesTasks():
		return agents.Task(setup)
	}
	return agents.Direct(setup)
}

// Used returns how much of the agent's budget its subagents have used or reserved.
func (a *teamAgent) Used() agent.Used {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	return a.usedBelow()
}

// TakeNews returns the agent's new messages and the notices of its subagents' ends, and forgets them.
func (a *teamAgent) TakeNews() []string {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	texts := a.messages
	for _, n := range a.news {
		texts = append(texts, a.noticeText(n))
	}
	a.messages, a.news = nil, nil
	return texts
}

// noticeText returns the message that tells the agent about a subagent's end.
func (a *teamAgent) noticeText(n endNotice) string {
	n.endStatus.Text = a.team.options.Record.Redact(n.endStatus.Text)
	if a.usesScripts {
		return agents.Final(a.id, n.subagent.id, n.endStatus).String()
	}
	return agents.Notification(n.subagent.id, n.endStatus)
}

// Begin marks the agent as working, so that it can start others, until End.
func (a *teamAgent) Begin(ctx context.Context) {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	a.ctx, a.waitUntil = ctx, time.Time{}
}

// taskText returns the message by which the agent gives a subagent a task.
func (a *teamAgent) taskText(s *teamAgent, task string) string {
	if a.usesScripts {
		return agents.Letter{Kind: agents.NewTask, To: s.id, From: a.id, Payload: task}.String()
	}
	return task
}

// Send sends a message to a subagent, and starts a turn of the subagent if it is idle. interrupt stops its current turn
// first. Send returns an ID for the message.
func (a *teamAgent) Send(ctx context.Context, id, message string, interrupt bool) (submission string, err error) {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := a.find(id)
	if err != nil {
		return "", err
	}
	if s.closed {
		return "", agents.Refusef("%s is closed. Open it by resume_agent, or start another agent.", s.id)
	}
	if interrupt {
		s.endTurn(turnStop{status: agents.Status{State: agents.Interrupted}})
		a.forgetNews(s)
	}
	startedTurn, replayed := t.recordedOrder.recordedSend(ctx)
	canReceive := func() bool {
		isIdle := s.stopTurn == nil
		return !s.turnEnding && (isIdle || !startedTurn) // in a replay, the recorded turn starts only when the agent is idle
	}
	if err := t.await(ctx, canReceive); err != nil {
		return "", err
	}
	if s.starter.ctx == nil {
		return "", agents.Refusef("%s was started by another agent, which has ended. Start an agent of your own.", s.id)
	}
	s.messagesSent++
	submission = fmt.Sprintf("%s-%d", s.id, s.messagesSent)
	isWorking := s.stopTurn != nil
	wasWorkingInRecord := replayed && !startedTurn
	startsTurn := !isWorking && !wasWorkingInRecord
	if startsTurn {
		if err := s.reserveShare(); err != nil {
			return "", err
		}
	}
	s.messages = append(s.messages, a.taskText(s, message))
	if startsTurn {
		a.forgetNews(s)
		err = s.startTurn(transcript.AgentStarted{})
	}
	return submission, err
}

// Note sends a message to a subagent without starting a turn.
func (a *teamAgent) Note(id, message string) error {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	s, err := a.find(id)
	if err != nil {
		return err
	}
	s.messages = append(s.messages, agents.Letter{Kind: agents.Plain, To: s.id, From: a.id, Payload: message}.String())
	return nil
}

// Resume reopens a closed subagent and returns its status.
func (a *teamAgent) Resume(id string) (agents.Status, error) {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := a.find(id)
	switch {
	case err != nil:
		return agents.Status{}, err
	case !s.closed:
		return s.status, nil
	case s.worksOnCopy() && s.place == nil:
		return agents.Status{}, agents.Refusef("The copy of the tree that %s worked on is gone. Start another agent.", s.id)
	case t.openCount() >= t.job().Agents.MaxOpen:
		return agents.Status{}, t.tooManySubagentsError()
	}
	s.closed = false
	if s.status.State == agents.Shutdown {
		s.status = agents.Status{State: agents.PendingInit}
	}
	return s.status, nil
}

// Wait waits until one of the subagents ids has ended, or until timeout. ended has the statuses of those that have
// ended. Without ids it waits for any news, and ended is nil.
func (a *teamAgent) Wait(ctx context.Context, ids []string, timeout time.Duration) (ended map[string]agents.Status, timedOut bool, err error) {
	t := a.team
	waitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recordedOrder.isInterruptedTask(ctx) {
		return nil, false, agents.Refusef("The run was over, or killed, while the agent worked.")
	}
	if recorded, replayed := t.recordedOrder.recordedWait(ctx); replayed {
		return a.replayWait(waitCtx, recorded, ids)
	}
	if len(ids) == 0 {
		_ = t.await(waitCtx, func() bool { return len(a.news) > 0 || len(a.workingBelow()) == 0 })
		return nil, len(a.news) == 0, ctx.Err()
	}
	_ = t.await(waitCtx, func() bool { return len(a.endedStatuses(ids)) > 0 })
	ended = a.endedStatuses(ids)
	a.forgetReported(ended)
	return ended, len(ended) == 0, ctx.Err()
}

// endedStatuses returns the statuses of the subagents among ids that have ended or do not exist, by ID. The caller holds
// the lock.
func (a *teamAgent) endedStatuses(ids []string) map[string]agents.Status {
	statuses := map[string]agents.Status{}
	for _, id := range ids {
		switch s, err := a.find(id); {
		case err != nil:
			statuses[id] = agents.Status{State: agents.NotFound}
		case s.status.Ended():
			statuses[id] = s.status
		}
	}
	return statuses
}

// forgetReported removes the notices about subagents whose statuses the result of a wait reports. The caller holds the
// lock.
func (a *teamAgent) forgetReported(statuses map[string]agents.Status) {
	for id := range statuses {
		if s, err := a.find(id); err == nil {
			a.forgetNews(s)
		}
	}
}

// forgetNews removes notices about a subagent that the agent has not received yet. The caller holds the lock.
func (a *teamAgent) forgetNews(s *teamAgent) {
	a.news = slices.DeleteFunc(a.news, func(n endNotice) bool { return n.subagent == s })
}

// Close stops and closes a subagent and all below it. It returns the subagent's status before.
func (a *teamAgent) Close(id string) (previous agents.Status, err error) {
	return a.stopTurns(id, turnStop{agents.Status{State: agents.Shutdown}, "closed"}, true)
}

// Interrupt stops the current turn of a subagent, which stays open. It returns the subagent's status before.
func (a *teamAgent) Interrupt(id string) (previous agents.Status, err error) {
	return a.stopTurns(id, turnStop{status: agents.Status{State: agents.Interrupted}}, false)
}

// stopTurns stops the current turn of a subagent and returns the subagent's status before. If closes is true, it also
// closes the subagent, and does the same to all below it.
func (a *teamAgent) stopTurns(id string, stop turnStop, closes bool) (previous agents.Status, err error) {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := a.find(id)
	if err != nil {
		return agents.Status{}, err
	}
	previous = s.status
	stopped := []*teamAgent{s}
	if closes {
		stopped = append(stopped, s.below()...)
	}
	for _, each := range stopped {
		each.endTurn(stop)
		each.closed = each.closed || closes
	}
	a.forgetNews(s)
	t.notifyWaiters()
	return previous, nil
}

// List returns the subagents below a whose IDs begin with prefix.
func (a *teamAgent) List(prefix string) (all []agents.Listed) {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	for _, s := range a.below() {
		if strings.HasPrefix(s.id, prefix) {
			all = append(all, agents.Listed{Name: s.id, Status: s.status, LastTask: s.task})
		}
	}
	return all
}

// Settle waits, when the agent ends, until the subagents below it have ended. It waits up to agents.wait, but not beyond
// the time at which limits.time leaves one last turn. news means that there is news and the agent has a turn left for
// it. Otherwise the agent's turn ends and takes no more messages.
func (a *teamAgent) Settle(ctx context.Context, hasTurnLeft bool) (news bool, err error) {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recordedOrder != nil {
		return a.replaySettle(ctx, hasTurnLeft)
	}
	if len(a.messages) > 0 && hasTurnLeft {
		return true, nil
	}
	if a.waitUntil.IsZero() {
		a.waitUntil = time.Now().Add(time.Duration(t.job().Agents.Wait))
	}
	until := a.waitUntil
	if lastTurnAt, limited := a.agent.Limits().LastTurnThreshold(); limited && lastTurnAt.Before(until) {
		until = lastTurnAt
	}
	waitCtx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	_ = t.await(waitCtx, func() bool { return len(a.workingBelow()) == 0 })
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if len(a.news) > 0 && hasTurnLeft {
		return true, nil
	}
	a.turnEnding = true
	return false, nil
}

// End stops and closes the subagents below this agent and removes their copies of the tree. It warns about work that is
// lost.
func (a *teamAgent) End() {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	a.ctx = nil // no turn starts below it any more
	stop := turnStop{agents.Status{State: agents.Shutdown}, "not_waited_for"}
	var ended []string
	working := a.workingBelow()
	for _, s := range working { // stop all before waiting, since a call of one may wait for a call of another
		s.stopTurn(stop)
	}
	for _, s := range working {
		s.endTurn(stop)
		if s.status.State == agents.Shutdown {
			ended = append(ended, s.name)
		}
	}
	var lost []string
	for _, s := range a.below() {
		if hasUnmerged := s.place != nil && s.mergeState != merged; hasUnmerged && !s.closed {
			lost = append(lost, s.name)
		}
		s.closeAndRemove()
	}
	if len(ended) > 0 {
		t.options.Record.Warn("agents_ended", "The agent finished while others that it had started still worked (%s); they were stopped, and their work is not in the change.", strings.Join(ended, ", "))
	}
	if len(lost) > 0 {
		t.options.Record.Warn("agents_ended", "Changes of other agents on copies of the work tree (%s) were not merged, and are not in the change.", strings.Join(lost, ", "))
	}
	a.news = nil
}
