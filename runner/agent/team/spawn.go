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

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// Spawn starts an agent and returns its ID and name. It does not wait for the agent.
func (m *member) Spawn(ctx context.Context, order agents.Order) (id, nickname string, err error) {
	c, err := m.addChild(order)
	if err != nil {
		return "", "", err
	}
	if err := m.prepare(ctx, c, order); err != nil {
		m.removeFailed(c)
		return "", "", err
	}
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	event := c.startEvent()
	event.Number, event.Forked, event.Effort, event.Price = len(m.team.earlierAgents)+len(m.team.children), order.Fork, order.Effort, c.agent.Model.Profile.Price
	if err := m.team.options.Record.AppendBy(c.id, event); err != nil {
		return "", "", err
	}
	c.beginTurn()
	return c.id, c.name, nil
}

// addChild adds a new agent to the team and reserves a share of the budget for it. It returns an error for the model if
// the agent may not start.
func (m *member) addChild(order agents.Order) (*child, error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case m.ctx == nil:
		return nil, agents.Refusef("No agent can be started now.")
	case m.depth >= t.job().Agents.Depth:
		return nil, agents.Refusef("You may start no agents (agents.depth). Do the work yourself.")
	case t.openCount() >= t.job().Agents.MaxOpen:
		return nil, t.tooManyAgentsError()
	}
	c := &child{starter: m, childTask: childTask{task: order.Message, roleName: cmp.Or(order.Role, "default")}, status: agents.Status{State: agents.PendingInit}}
	var err error
	if c.role, err = t.roleOf(order.Role); err != nil {
		return nil, err
	}
	if c.paths, err = cleanPaths(order.Paths); err != nil {
		return nil, err
	}
	if c.reservedShare, err = m.shareForChild(); err != nil {
		return nil, err
	}
	c.maxUSD = c.reservedShare.CostUSD
	c.name = m.nameOf(m.startedCount)
	if m.usesScripts {
		c.name = order.Name
	}
	c.id = m.idOf(order, c.name)
	isTaken := slices.ContainsFunc(t.children, func(other *child) bool { return other.id == c.id }) ||
		slices.ContainsFunc(t.earlierAgents, func(other *transcript.Agent) bool { return other.ID == c.id })
	if isTaken {
		return nil, agents.Refusef("There is an agent %s already. Give the task another name.", c.id)
	}
	m.startedCount++
	t.children = append(t.children, c)
	return c, nil
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

// cleanPaths returns the paths that an agent may change, cleaned and relative to the repository's root. It returns an
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

// mayChange reports whether the child may change the path name: it has no list of paths, or an entry of the list is
// the path, a folder above it, or a glob pattern for it.
func (c *child) mayChange(name string) bool {
	return len(c.paths) == 0 || slices.ContainsFunc(c.paths, func(own string) bool {
		if pathname.IsInAny(name, own) {
			return true
		}
		matches, err := pathname.MatchGlob(own, name)
		return err == nil && matches
	})
}

// removeFailed undoes addChild for an agent that could not start.
func (m *member) removeFailed(c *child) {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	c.closeAndRemove()
	m.startedCount--
	m.team.children = slices.DeleteFunc(m.team.children, func(other *child) bool { return other == c })
}

// prepare asks the hooks about a new agent, and sets its model, its copy of the tree and its first messages.
func (m *member) prepare(ctx context.Context, c *child, order agents.Order) error {
	o := m.team.options
	description := hooks.Subagent{ID: c.id, Name: c.name, Role: c.roleName, AskedBy: m.starterName(), Task: o.Record.Redact(order.Message), Writes: c.role.Writes, Paths: c.paths}
	refusal, added, err := o.Hooks.SubagentStart(ctx, description)
	if err != nil {
		return err
	}
	if refusal != "" {
		return &agents.Refusal{Words: refusal}
	}
	childJob := m.jobOf(c, order)
	childModel, err := m.modelFor(ctx, c, order.Message, childJob)
	if err != nil {
		return err
	}
	c.model = childJob.Model.Name
	if err := m.forkTree(ctx, c); err != nil {
		return err
	}
	c.ownTeam = &member{team: m.team, child: c, depth: m.depth + 1}
	options := worker.Child{ID: c.id, Role: c.role, Place: c.place, MayChange: c.mayChange, Description: description}
	c.agent, err = m.agent.NewChild(ctx, options, worker.Options{Job: childJob, Model: childModel, Team: c.ownTeam, ScriptEngine: o.ScriptEngine, Skills: o.Skills, Memory: o.Memory})
	if err != nil {
		return refusedBy(ctx, err)
	}
	c.ownTeam.agent = c.agent
	m.team.mu.Lock()
	c.agent.SetLimits(m.limitsOf(agent.Used{}, c.reservedShare))
	m.team.mu.Unlock()
	items, err := m.firstMessages(c, order, added)
	if err != nil {
		return err
	}
	message := order.Message
	if m.usesScripts {
		message = agents.Letter{Kind: agents.NewTask, To: c.id, From: m.id(), Payload: message}.String()
	}
	return c.agent.Begin(items, message)
}

// modelFor returns the model of a child. It returns an error for the model's starter if the run has a cost limit but
// the model's price is unknown.
func (m *member) modelFor(ctx context.Context, c *child, message string, childJob *job.Job) (provider.Model, error) {
	found, err := m.team.options.Model.ForAgent(provider.StartedAgent{ID: c.id, Message: message, Job: childJob})
	if err != nil {
		return found, refusedBy(ctx, err)
	}
	if childJob.Limits.CostUSD > 0 && m.agent.Model.Profile.Price.Known() && !found.Profile.Price.Known() {
		return found, agents.Refusef("The price of %s is not known, so limits.cost_usd could not hold for the agent. Start it without model.", childJob.Model.Name)
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

// jobOf returns the job of a child: the run's job without the settings for the run's own agent alone, such as MCP
// servers. The child's model settings come from its order, its role or its starter, in this order.
func (m *member) jobOf(c *child, order agents.Order) *job.Job {
	childJob := *m.team.job()
	starterModel := m.agent.Job.Model // the starter's model may differ from the run's
	childJob.Model = starterModel
	childJob.MCPServers, childJob.Tools.Dynamic, childJob.Tools.JSRepl = nil, nil, false
	childJob.Tools.Allow, childJob.Tools.Deny = nil, nil
	childJob.Task.Questions = "assume"
	if len(c.role.Tools) > 0 {
		childJob.Tools.Hosted = nil
	}
	if childJob.Model.Tools == "code" {
		childJob.Model.Tools = "auto"
	}
	if name := cmp.Or(order.Model, c.role.Model); name != "" && name != childJob.Model.Name {
		childJob.Model.Name, childJob.Model.ContextWindow, childJob.Model.Price = name, 0, job.Price{}
		childJob.Model.Fallbacks = slices.DeleteFunc(slices.Clone(childJob.Model.Fallbacks), func(other string) bool { return other == name })
	}
	childJob.Model.ReasoningEffort = cmp.Or(order.Effort, c.role.Effort, childJob.Model.ReasoningEffort)
	childJob.Model.ServiceTier = cmp.Or(order.ServiceTier, childJob.Model.ServiceTier)
	return &childJob
}

// forkTree copies the agent's tree for the child, if the child's role needs a copy.
func (m *member) forkTree(ctx context.Context, c *child) error {
	if c.role.Writes != job.WritesOwn {
		return nil
	}
	t := m.team
	t.mergeLock.Lock()
	defer t.mergeLock.Unlock()
	place, err := t.options.Sandboxes.Fork(ctx, m.agent.Sandbox(), m.agent.Place(), scratchOf(c))
	cannotCopyNow := errors.As(err, new(*layer.ForkError)) || errors.As(err, new(*sandbox.PauseError))
	if cannotCopyNow {
		return agents.Refusef("There can be no copy of the tree now: %v. Start an explorer, or make the change yourself.", outcome.WithoutFullStop(err))
	}
	if err != nil {
		return err
	}
	c.place = &place
	c.mergedState, err = t.changesIn(ctx, place)
	return err
}

// scratchOf returns the name of the folder for a child's copy.
func scratchOf(c *child) string {
	return confine.CopyScratch + strings.ReplaceAll(sanitizeName(c.name), ".", "-")
}

// plainCharacters are the characters that sanitizeName keeps.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789."

// sanitizeName replaces all characters but plainCharacters by dashes.
func sanitizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(plainCharacters, r) {
			return r
		}
		return '-'
	}, name)
}

// firstMessages returns the items that a child's conversation has before its task. added is context from hooks, or "".
func (m *member) firstMessages(c *child, order agents.Order, added string) ([]json.RawMessage, error) {
	items := m.team.root.agent.Facts()
	if order.Fork {
		items = m.agent.LastRequest(c.model)
	}
	texts := []string{introduction(c, m)}
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

// introduction returns the message that tells a child its name, its starter, and what it may change.
func introduction(c *child, starter *member) string {
	mayChange := map[string]string{
		job.WritesNone:   "You can read files, and change nothing.",
		job.WritesOwn:    "You work on a copy of its tree; what git would commit of your change is merged into its tree when you have ended.",
		job.WritesShared: "You change its tree, at the same time as it does.",
	}[c.role.Writes]
	if len(c.paths) > 0 && c.role.Writes != job.WritesNone {
		mayChange += fmt.Sprintf(" Of that only these paths are taken over: %s.", strings.Join(c.paths, ", "))
	}
	return fmt.Sprintf("You are the agent %s. The agent %s has started you for the task that follows, and reads your last message as the answer; it sees nothing else of what you say. %s "+
		"Nobody answers questions: assume what is most likely, and say so.", c.id, starter.id(), mayChange)
}
