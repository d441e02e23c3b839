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

// Used returns the part of the agent's budget that its subagents have used or reserved.
func (a *teamAgent) Used() agent.Used {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	return a.usedBelow()
}

// TakeNews returns the agent's new messages and the notices about ended subagents, and forgets them.
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

// noticeText returns the notice for the agent that a subagent has ended.
func (a *teamAgent) noticeText(n endNotice) string {
	n.endStatus.Text = a.team.options.Record.Redact(n.endStatus.Text)
	if a.usesScripts {
		return agents.Final(a.id, n.subagent.id, n.endStatus).String()
	}
	return agents.Notification(n.subagent.id, n.endStatus)
}

// Begin marks the agent as working until End. Only a working agent can start subagents.
func (a *teamAgent) Begin(ctx context.Context) {
	a.team.mu.Lock()
	defer a.team.mu.Unlock()
	a.ctx, a.waitUntil = ctx, time.Time{}
}

// taskText returns the message that gives a subagent its task.
func (a *teamAgent) taskText(s *teamAgent, task string) string {
	if a.usesScripts {
		return agents.Letter{Kind: agents.NewTask, To: s.id, From: a.id, Payload: task}.String()
	}
	return task
}

// Send sends a message to a subagent. If the subagent is idle, a turn of it starts. If interrupt is true, Send stops the
// subagent's current turn first. submission is the ID of the message.
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
		return !s.turnEnding && (isIdle || !startedTurn) // a replay waits for an idle subagent before it starts the recorded turn
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

// Resume opens a closed subagent again and returns its status.
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

// Wait waits for the end of at least one of the subagents ids. ended maps the IDs of ended subagents to their statuses.
// Without ids, Wait waits for any news and ended is nil. timedOut means that it waited in vain.
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

// endedStatuses maps each ID in ids to the subagent's status, without subagents that still work. Unknown IDs have the
// status NotFound. The caller holds the lock.
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

// forgetReported removes the pending notices about the subagents in statuses, which a wait reports. The caller holds the
// lock.
func (a *teamAgent) forgetReported(statuses map[string]agents.Status) {
	for id := range statuses {
		if s, err := a.find(id); err == nil {
			a.forgetNews(s)
		}
	}
}

// forgetNews removes the agent's pending notices about a subagent. The caller holds the lock.
func (a *teamAgent) forgetNews(s *teamAgent) {
	a.news = slices.DeleteFunc(a.news, func(n endNotice) bool { return n.subagent == s })
}

// Close stops and closes a subagent and all subagents below it. previous is the subagent's status before that.
func (a *teamAgent) Close(id string) (previous agents.Status, err error) {
	return a.stopTurns(id, turnStop{agents.Status{State: agents.Shutdown}, "closed"}, true)
}

// Interrupt stops the current turn of a subagent, which stays open. previous is the subagent's status before that.
func (a *teamAgent) Interrupt(id string) (previous agents.Status, err error) {
	return a.stopTurns(id, turnStop{status: agents.Status{State: agents.Interrupted}}, false)
}

// stopTurns stops the current turn of a subagent. If closes is true, it stops and closes the subagent and all subagents
// below it. previous is the subagent's status before that.
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

// Settle waits for the working subagents when the agent is about to end. It waits up to agents.wait, but stops when
// limits.time allows only one more turn. news means that the agent must continue: it has news and a turn left. Otherwise
// the agent's turn is ending and takes no more messages.
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

// End stops and closes all subagents below the agent and removes their copies of the tree. It warns about lost work.
func (a *teamAgent) End() {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	a.ctx = nil // from now on, its subagents start no turns
	stop := turnStop{agents.Status{State: agents.Shutdown}, "not_waited_for"}
	var ended []string
	working := a.workingBelow()
	for _, s := range working { // stop all before waiting for any: calls of one may wait for calls of another
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
