package team

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// teamAgent is an agent of the team: the run's own agent, or a subagent. It also manages the subagents of this agent.
type teamAgent struct {
	team        *team
	agent       *assembly.Agent
	starter     *teamAgent // nil for the run's own agent
	depth       int        // number of agents above it
	id, name    string     // the run's own agent has no name
	usesScripts bool       // its model calls tools in scripts

	// Order of a subagent.
	roleName string
	role     job.Role
	task     string
	paths    []string
	model    string

	// Guarded by the team's lock.

	ctx            context.Context // context of its work; nil while it is idle
	startedCount   int             // number of subagents that it started
	messages       []string        // messages that it has not received yet
	messagesSent   int             // number of messages sent to it
	news           []endNotice     // news of its subagents that it has not received yet
	waitUntil      time.Time       // when Settle stops waiting; zero before the first Settle
	recordedMerges []string        // subagents that the recorded wait merged; nil outside a replayed wait

	// State of a subagent. Guarded by the team's lock.

	status     agents.Status
	closed     bool                    // closed until resume_agent opens it
	stopTurn   context.CancelCauseFunc // stops its turn because of a turnStop; nil if there is no turn
	turnDone   chan struct{}           // closed when the turn has ended
	turnEnding bool                    // the turn is ending and reads no more messages
	reserved   agent.Used              // the share of its starter's budget for its current turn
	allowed    agent.Used              // the most that it and its subagents can use in all
	spent      agent.Spent             // use in finished turns
	place      *confine.Place          // its copy of its starter's tree; nil without a copy
	mergeState mergeState

	mergedState *gitops.ChangeSet // state of the copy at its start or last merge; guarded by the merge lock
}

// endNotice is the news of a subagent's end, for its starter.
type endNotice struct {
	subagent  *teamAgent
	endStatus agents.Status
}

// turnStop is why another agent or the runner stops a turn of a subagent.
type turnStop struct {
	status agents.Status
	reason string
}

// Error lets a turnStop be the cause of a cancelled context.
func (e turnStop) Error() string { return "the agent was ended: " + e.status.State }

// worksOnCopy reports whether the subagent's role needs a copy of its starter's tree.
func (s *teamAgent) worksOnCopy() bool { return s.role.Writes == job.WritesOwn }

// recordedName returns the agent's name in the record of a subagent that it starts.
func (a *teamAgent) recordedName() string {
	if a.starter == nil {
		return transcript.MainAgent
	}
	return a.id
}

// isAbove reports whether a started s, directly or through other agents.
func (a *teamAgent) isAbove(s *teamAgent) bool {
	for starter := s.starter; starter != nil; starter = starter.starter {
		if starter == a {
			return true
		}
	}
	return false
}

// below returns the subagents that a started, directly or through other agents. The caller holds the lock.
func (a *teamAgent) below() []*teamAgent {
	return slices.DeleteFunc(slices.Clone(a.team.subagents), func(s *teamAgent) bool { return !a.isAbove(s) })
}

// workingBelow returns the subagents below a that are working. The caller holds the lock.
func (a *teamAgent) workingBelow() []*teamAgent {
	return slices.DeleteFunc(a.below(), func(s *teamAgent) bool { return s.stopTurn == nil })
}

// find returns the subagent with this ID or name below a, or an error for the model if there is none. The caller holds
// the lock.
func (a *teamAgent) find(id string) (*teamAgent, error) {
	for _, s := range a.team.subagents {
		if (s.id == id || s.name == id) && a.isAbove(s) {
			return s, nil
		}
	}
	return nil, agents.Unknown(id)
}

// subagentNames are the names of subagents, in order.
var subagentNames = []string{
	"Curie", "Noether", "Hopper", "Lovelace", "Meitner", "Franklin", "Goodall", "Hypatia", "Kepler", "Sagan", "Turing", "Euler",
	"Gauss", "Darwin", "Faraday", "Galileo", "Hubble", "Mendel", "Pascal", "Planck", "Raman", "Tesla", "Volta", "Wegener",
}

// nameOf returns the name for a subagent of a. number counts those that a starts, from 0.
func (a *teamAgent) nameOf(number int) string {
	name := subagentNames[number%len(subagentNames)]
	if round := number / len(subagentNames); round > 0 {
		name = fmt.Sprintf("%s-%d", name, round+1)
	}
	return path.Join(a.name, name)
}

// idOf returns the ID of a new subagent called name. A replay of the run gives the same ID.
func (a *teamAgent) idOf(name string) string {
	if a.usesScripts {
		return a.id + "/" + name
	}
	sum := sha256.Sum256([]byte(a.team.options.Record.ID + "\x00" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // mark it as a UUID of version 8 (custom)
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// startTurn starts a turn of the subagent in the background and records event. It sets the fields of event that every turn
// has. The caller has reserved a share for the turn, and holds the lock.
func (s *teamAgent) startTurn(event transcript.AgentStarted) error {
	limits := s.limits()
	s.agent.SetLimits(limits)
	event.Name, event.Role, event.StartedBy, event.Model, event.Writes, event.Paths = s.name, s.roleName, s.starter.recordedName(), s.model, s.role.Writes, s.paths
	event.Turns, event.ToolCalls, event.Tokens, event.CostUSD = limits.Turns, limits.Calls, limits.Tokens, limits.CostUSD
	if err := s.team.options.Record.AppendBy(s.id, event); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(s.starter.ctx)
	done := make(chan struct{})
	s.status, s.turnEnding, s.mergeState = agents.Status{State: agents.Running}, false, unmerged
	s.stopTurn, s.turnDone = cancel, done
	go func() {
		defer close(done)
		defer cancel(nil)
		s.runTurn(ctx)
	}()
	return nil
}

// crashed is the recorded reason of a subagent that crashed. A separate warning has the details.
const crashed = "crash"

// maxWarningBytes limits the error text in a subagent's warning, in bytes.
const maxWarningBytes = 500

// runTurn runs one turn of a subagent, records its end, and tells its starter.
func (s *teamAgent) runTurn(ctx context.Context) {
	status, reason := s.work(ctx)
	work := s.agent.Work()
	t := s.team
	_ = t.options.Record.AppendBy(s.id, transcript.AgentFinished{Status: status.State, Reason: reason, Text: status.Text})
	t.mu.Lock()
	defer t.mu.Unlock()
	s.status, s.stopTurn, s.reserved, s.turnEnding = status, nil, agent.Used{}, false
	s.spent = work.Spent
	if status.State == agents.Errored && reason != crashed {
		t.options.Record.Warn("agent_errored", "The agent %s (%s) failed (%s): %s", s.name, s.roleName, reason, clip.Visible(status.Text, maxWarningBytes))
	}
	if status.State != agents.Shutdown {
		s.starter.news = append(s.starter.news, endNotice{s, status})
	}
	t.notifyWaiters()
}

// work runs the subagent until its turn ends. It returns the subagent's status then. reason is why the turn failed or
// was stopped, or "".
func (s *teamAgent) work(ctx context.Context) (status agents.Status, reason string) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			s.team.options.Record.Warn("agent_panic", "The agent %s crashed: %v\n%s", s.name, panicValue, debug.Stack())
			status, reason = agents.Status{State: agents.Errored, Text: "It crashed. This is a fault of agent-ci, not of its task."}, crashed
		}
	}()
	work, err := s.agent.Run(ctx)
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
	text := outcome.ShortenNames(s.team.options.Record.Redact(stop.Message))
	if work.Summary != "" {
		text += "\nIts last words: " + work.Summary
	}
	return agents.Status{State: agents.Errored, Text: text}, fmt.Sprintf("%s/%s", stop.Outcome, stop.Reason)
}

// endTurn stops the subagent's turn, if there is one, and waits for its end. The caller holds the lock, which endTurn
// releases while it waits.
func (s *teamAgent) endTurn(stop turnStop) {
	if s.stopTurn == nil {
		return
	}
	s.stopTurn(stop)
	done := s.turnDone
	s.team.mu.Unlock()
	<-done
	s.team.mu.Lock()
}

// closeAndRemove closes an ended subagent and removes its copy of the tree, if it has one. The caller holds the lock.
func (s *teamAgent) closeAndRemove() {
	s.closed = true
	if s.place == nil {
		return
	}
	if err := s.team.options.Sandboxes.Remove(*s.place); err != nil {
		s.team.options.Record.Warn("agent_copy", "The copy of the work tree of the agent %s could not be removed: %v.", s.name, err)
	}
	s.place = nil
}
