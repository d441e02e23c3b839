package assembly

import (
	"context"
	"encoding/json"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Team manages the subagents of an agent.
type Team interface {
	agent.Team
	// Begin marks the agent as working, until End. The agent has its toolbox by then, because subagents may share it.
	Begin(ctx context.Context)
	// Tools returns the model's tools for managing the team.
	Tools() []tools.Tool
	// Settle waits for working subagents when the agent is about to end, even after an exhausted budget. news means that
	// the agent must continue: it has news and a turn left.
	Settle(ctx context.Context, hasTurnLeft bool) (news bool, err error)
	// End stops all working subagents.
	End()
}

// Subagent describes an agent that another agent starts.
type Subagent struct {
	// Description describes the subagent to hooks. The subagent's events have its ID.
	Description hooks.Subagent
	Role        job.Role
	// Place is the subagent's own copy of the tree. It is nil if the subagent shares its starter's tree.
	Place *confine.Place
	// MayChange reports whether the agent may change a path, relative to the checkout's root.
	MayChange func(path string) bool

	starter *Agent
}

// NewSubagent returns a subagent of a, as described by o.Subagent. It replaces o.Shared by that of a. The subagent may
// use the built-in tools of a, but not its MCP servers.
func (a *Agent) NewSubagent(ctx context.Context, o Options) (*Agent, error) {
	o.Shared, o.Subagent.starter = a.Shared, a
	return New(ctx, o)
}

// LastRequest returns the items of the agent's last request that this model can read.
func (a *Agent) LastRequest(model string) []json.RawMessage { return a.conversation.LastRequest(model) }

// Begin begins the conversation of a subagent: items, then the message of its starter.
func (a *Agent) Begin(items []json.RawMessage, message string) error {
	a.conversation.Begin(items...)
	return a.conversation.TellExternal(message)
}

// Facts returns the agent's briefing without the task.
func (a *Agent) Facts() []json.RawMessage { return a.runFacts }

// MergeSaver returns a function that saves a merge into the agent's tree. It returns nil if the agent is idle or works on
// a copy of the tree.
func (a *Agent) MergeSaver() func(diff string) error {
	if a.toolbox == nil || !a.usesMainTree() {
		return nil
	}
	return a.changeSaver(mergeChange)
}

// usesMainTree reports whether the agent works in the tree of the run's own agent, and not on a copy.
func (a *Agent) usesMainTree() bool { return a.Place().Scratch == confine.AgentScratch }

// SetLimits sets the budget of an idle agent.
func (a *Agent) SetLimits(l agent.Limits) { a.conversation.Limits = l }

// Limits returns the agent's limits.
func (a *Agent) Limits() agent.Limits { return a.conversation.Limits }

// Sandbox returns the sandbox of the agent's commands, or nil while the agent is idle.
func (a *Agent) Sandbox() *sandbox.Sandbox {
	if a.toolbox == nil {
		return nil
	}
	return a.toolbox.sandbox
}

// Place returns the place of the agent's commands: the main tree or a copy.
func (a *Agent) Place() confine.Place {
	switch {
	case a.Subagent == nil:
		return confine.AgentPlace()
	case a.Subagent.Place != nil:
		return *a.Subagent.Place
	}
	return a.Subagent.starter.Place()
}

// mayWrite reports whether the agent may change files.
func (a *Agent) mayWrite() bool { return a.Subagent == nil || a.Subagent.Role.Writes != job.WritesNone }

// makeSubagentTools is makeTools for a subagent. Without its own copy of the tree, it shares its starter's tree and, if it
// may write, its starter's sandbox.
func (a *Agent) makeSubagentTools(ctx context.Context) error {
	starter := a.Subagent.starter
	a.hookAnswers = starter.hookAnswers
	if a.Subagent.Place == nil {
		a.toolbox = &toolbox{view: starter.toolbox.view, borrowed: true}
		if a.mayWrite() {
			a.toolbox.sandbox = starter.toolbox.sandbox
		}
	} else {
		box := sandbox.OpenOnFirstUse(ctx, a.Sandboxes.Options(*a.Subagent.Place))
		a.toolbox = &toolbox{sandbox: box, view: a.newTreeView(box)}
	}
	if err := a.useTools(ctx, a.toolbox); err != nil {
		return err
	}
	if a.Subagent.Place == nil && a.mayWrite() {
		a.conversation.Tools.SharesOrderWith = starter.conversation.Tools
	}
	return nil
}

// subagentMayUse reports whether a subagent may use a tool. It may neither change the plan nor ask people. Its role and
// its starter's lists of allowed and denied tools decide about other tools.
func (a *Agent) subagentMayUse(name string) bool {
	ofStarter, ofRole := a.Subagent.starter.Job.Tools, a.Subagent.Role.Tools
	switch {
	case name == questionTool || dialect.Is(name, dialect.Plans):
		return false
	case a.toolset.includes(ofStarter.Deny, name):
		return false
	case !a.mayWrite() && (dialect.Is(name, dialect.Commands) || changesFiles(name)):
		return false
	case dialect.Is(name, dialect.Leads): // lists of allowed tools do not apply to a team's tools
		return true
	case len(ofStarter.Allow) > 0 && !a.toolset.includes(ofStarter.Allow, name):
		return false
	}
	return len(ofRole) == 0 || a.toolset.includes(ofRole, name)
}

// settleTeam calls Settle of the agent's team, if it has one.
func (a *Agent) settleTeam(ctx context.Context, hasTurnLeft bool) (news bool, err error) {
	if a.Team == nil {
		return false, nil
	}
	return a.Team.Settle(ctx, hasTurnLeft)
}

// hasTurnLeft reports whether the agent's budget and model allow another turn.
func (a *Agent) hasTurnLeft() bool {
	return a.StopIfNoTurnLeft() == nil && (a.Model.HasAnswers == nil || a.Model.HasAnswers())
}

// foreignPathRefusal returns the refusal for a subagent that may not change a path, or "" if it may. full is relative to
// the checkout's root.
func (a *Agent) foreignPathRefusal(full string) string {
	if a.Subagent == nil || a.Subagent.MayChange(full) {
		return ""
	}
	return full + " is not one of the paths that you may change; leave it as it is, and say in your last message what should change there."
}
