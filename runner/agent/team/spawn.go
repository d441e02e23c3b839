package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// Spawn starts a subagent and returns its ID and name. It does not wait for the subagent.
func (a *teamAgent) Spawn(ctx context.Context, order agents.Order) (id, nickname string, err error) {
	s, err := a.addSubagent(order)
	if err != nil {
		return "", "", err
	}
	if err := s.prepare(ctx, order); err != nil {
		s.removeFailed()
		return "", "", err
	}
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.id, s.name, s.startTurn(transcript.AgentStarted{
		Number: len(t.earlierSubagents) + len(t.subagents), Forked: order.Fork, Effort: order.Effort, Price: s.agent.Model.Profile.Price,
	})
}

// addSubagent adds a new subagent to the team and reserves a share of the budget for it. It returns an error for the
// model if the subagent may not start.
func (a *teamAgent) addSubagent(order agents.Order) (*teamAgent, error) {
	t := a.team
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case a.ctx == nil:
		return nil, agents.Refusef("No agent can be started now.")
	case a.depth >= t.job().Agents.Depth:
		return nil, agents.Refusef("You may start no agents (agents.depth). Do the work yourself.")
	case t.openCount() >= t.job().Agents.MaxOpen:
		return nil, t.tooManySubagentsError()
	}
	s := &teamAgent{team: t, starter: a, depth: a.depth + 1, task: order.Message, roleName: cmp.Or(order.Role, "default"), status: agents.Status{State: agents.PendingInit}}
	var err error
	if s.role, err = t.roleOf(order.Role); err != nil {
		return nil, err
	}
	if s.paths, err = cleanPaths(order.Paths); err != nil {
		return nil, err
	}
	if err := s.reserveShare(); err != nil {
		return nil, err
	}
	s.name = a.nameOf(a.startedCount)
	if a.usesScripts {
		s.name = order.Name
	}
	s.id = a.idOf(s.name)
	isTaken := slices.ContainsFunc(t.subagents, func(other *teamAgent) bool { return other.id == s.id }) ||
		slices.ContainsFunc(t.earlierSubagents, func(other *transcript.Subagent) bool { return other.ID == s.id })
	if isTaken {
		return nil, agents.Refusef("There is an agent %s already. Give the task another name.", s.id)
	}
	a.startedCount++
	t.subagents = append(t.subagents, s)
	return s, nil
}

// roleOf returns the role called name. For "" it returns a role that works on a copy of the tree.
func (t *team) roleOf(name string) (job.Role, error) {
	if name == "" {
		return job.Role{Writes: job.WritesOwn}, nil
	}
	role, known := t.job().Agents.Role(name)
	if !known {
		return role, agents.Refusef("There is no role %s; there are %s.", name, strings.Join(t.job().Agents.RoleNames(), ", "))
	}
	return role, nil
}

// cleanPaths returns the paths that a subagent may change, cleaned and relative to the repository's root. It returns an
// error for the model for a path outside of the repository.
func cleanPaths(given []string) (paths []string, err error) {
	for _, p := range given {
		clean := path.Clean(strings.TrimSuffix(strings.TrimSpace(p), "/"))
		if !filepath.IsLocal(clean) {
			return nil, agents.Refusef("paths has %q, which is no path below the root of the repository.", p)
		}
		paths = append(paths, clean)
	}
	return paths, nil
}

// mayChange reports whether the subagent may change the path name: it has no list of paths, or an entry of the list is
// the path, a folder above it, or a glob pattern for it.
func (s *teamAgent) mayChange(name string) bool {
	return len(s.paths) == 0 || slices.ContainsFunc(s.paths, func(own string) bool {
		if pathname.IsInAny(name, own) {
			return true
		}
		matches, err := pathname.MatchGlob(own, name)
		return err == nil && matches
	})
}

// removeFailed undoes addSubagent for a subagent that could not start.
func (s *teamAgent) removeFailed() {
	t := s.team
	t.mu.Lock()
	defer t.mu.Unlock()
	s.closeAndRemove()
	s.starter.startedCount--
	t.subagents = slices.DeleteFunc(t.subagents, func(other *teamAgent) bool { return other == s })
}

// prepare asks the hooks about a new subagent, and sets its model, its copy of the tree and its first messages.
func (s *teamAgent) prepare(ctx context.Context, order agents.Order) error {
	o := s.team.options
	description := hooks.Subagent{ID: s.id, Name: s.name, Role: s.roleName, AskedBy: s.starter.recordedName(), Task: o.Record.Redact(order.Message), Writes: s.role.Writes, Paths: s.paths}
	refusal, added, err := o.Hooks.SubagentStart(ctx, description)
	if err != nil {
		return err
	}
	if refusal != "" {
		return &agents.Refusal{Words: refusal}
	}
	itsJob := s.jobFor(order)
	itsModel, err := s.modelFor(ctx, order.Message, itsJob)
	if err != nil {
		return err
	}
	s.model = itsJob.Model.Name
	if err := s.forkTree(ctx); err != nil {
		return err
	}
	s.agent, err = s.starter.agent.NewSubagent(ctx, assembly.Options{
		Job: itsJob, Model: itsModel, Team: s, // without ScriptEngine, because it calls its tools directly
		Subagent: &assembly.Subagent{Description: description, Role: s.role, Place: s.place, MayChange: s.mayChange},
	})
	if err != nil {
		return refusedBy(ctx, err)
	}
	items, err := s.firstMessages(order, added)
	if err != nil {
		return err
	}
	return s.agent.Begin(items, s.starter.taskText(s, order.Message))
}

// modelFor returns the model of the subagent. It returns an error for the model of the starter if the run has a cost
// limit but the model's price is unknown.
func (s *teamAgent) modelFor(ctx context.Context, message string, itsJob *job.Job) (provider.Model, error) {
	found, err := s.team.options.Model.ForSubagent(provider.Subagent{ID: s.id, Message: message, Job: itsJob})
	if err != nil {
		return found, refusedBy(ctx, err)
	}
	if itsJob.Limits.CostUSD > 0 && s.starter.agent.Model.Profile.Price != nil && found.Profile.Price == nil {
		return found, agents.Refusef("The price of %s is not known, so limits.cost_usd could not hold for the agent. Start it without model.", itsJob.Model.Name)
	}
	return found, nil
}

// refusedBy turns an error that would end the run into one for the model, because a wrong order must not end the run.
// It returns other errors unchanged.
func refusedBy(ctx context.Context, err error) error {
	stop, isStop := errors.AsType[*outcome.Stop](err)
	if ctx.Err() == nil && isStop {
		return agents.Refusef("The agent can't be started: %s", stop.Message)
	}
	return err
}

// jobFor returns the job of the subagent: the run's job without the settings for the run's own agent alone, such as MCP
// servers. The model settings come from the order, the role or the starter, in this order.
func (s *teamAgent) jobFor(order agents.Order) *job.Job {
	itsJob := *s.team.job()
	itsJob.Model = s.starter.agent.Job.Model // the starter's model may differ from the run's
	itsJob.MCPServers, itsJob.Tools.Dynamic, itsJob.Tools.JSRepl = nil, nil, false
	itsJob.Tools.Allow, itsJob.Tools.Deny = nil, nil
	itsJob.Task.Questions = "assume"
	if len(s.role.Tools) > 0 {
		itsJob.Tools.Hosted = nil
	}
	if itsJob.Model.Tools == "code" {
		itsJob.Model.Tools = "auto"
	}
	if name := cmp.Or(order.Model, s.role.Model); name != "" && name != itsJob.Model.Name {
		itsJob.Model.Name, itsJob.Model.ContextWindow, itsJob.Model.Price = name, 0, job.Price{}
		itsJob.Model.Fallbacks = slices.DeleteFunc(slices.Clone(itsJob.Model.Fallbacks), func(other string) bool { return other == name })
	}
	itsJob.Model.ReasoningEffort = cmp.Or(order.Effort, s.role.Effort, itsJob.Model.ReasoningEffort)
	itsJob.Model.ServiceTier = cmp.Or(order.ServiceTier, itsJob.Model.ServiceTier)
	return &itsJob
}

// forkTree copies the starter's tree for the subagent, if its role needs a copy.
func (s *teamAgent) forkTree(ctx context.Context) error {
	if !s.worksOnCopy() {
		return nil
	}
	t, starter := s.team, s.starter.agent
	t.mergeLock.Lock()
	defer t.mergeLock.Unlock()
	place, err := t.options.Sandboxes.Fork(ctx, starter.Sandbox(), starter.Place(), s.scratch())
	cannotCopyNow := errors.As(err, new(*layer.ForkError)) || errors.As(err, new(*sandbox.PauseError))
	if cannotCopyNow {
		return agents.Refusef("There can be no copy of the tree now: %v. Start an explorer, or make the change yourself.", outcome.WithoutFullStop(err))
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	s.place = &place
	t.mu.Unlock()
	s.mergedState, err = t.changesIn(ctx, place)
	return err
}

// scratch returns the name of the folder for the subagent's copy.
func (s *teamAgent) scratch() string {
	return confine.CopyScratch + clip.Name(s.name, "", '-')
}

// firstMessages returns the items that the subagent's conversation has before its task. added is context from hooks, or
// "".
func (s *teamAgent) firstMessages(order agents.Order, added string) ([]json.RawMessage, error) {
	items := s.team.root.agent.Facts()
	if order.Fork {
		items = s.starter.agent.LastRequest(s.model)
	}
	texts := []string{s.introduction()}
	if added != "" {
		texts = append(texts, added)
	}
	for _, text := range texts {
		item, err := rawitem.TextMessage("developer", text)
		if err != nil {
			return nil, err
		}
		items = append(slices.Clip(items), item)
	}
	return items, nil
}

// introduction returns the message that tells the subagent its name, its starter, and what it may change.
func (s *teamAgent) introduction() string {
	mayChange := map[string]string{
		job.WritesNone:   "You can read files, and change nothing.",
		job.WritesOwn:    "You work on a copy of its tree; what git would commit of your change is merged into its tree when you have ended.",
		job.WritesShared: "You change its tree, at the same time as it does.",
	}[s.role.Writes]
	if len(s.paths) > 0 && s.role.Writes != job.WritesNone {
		mayChange += fmt.Sprintf(" Of that only these paths are taken over: %s.", strings.Join(s.paths, ", "))
	}
	return fmt.Sprintf("You are the agent %s. The agent %s has started you for the task that follows, and reads your last message as the answer; it sees nothing else of what you say. %s "+
		"Nobody answers questions: assume what is most likely, and say so.", s.id, s.starter.id, mayChange)
}
