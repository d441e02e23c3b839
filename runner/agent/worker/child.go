package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Team manages the agents started by one agent.
type Team interface {
	agents.Team
	// Begin marks the agent as working, until End.
	Begin(ctx context.Context)
	// Tools returns the model's tools for managing the team.
	Tools() []tools.Tool
	// Used returns the team's used and reserved share of the agent's budget.
	Used() agent.Used
	// Settle runs at the agent's end, also after an exhausted budget. It waits for working agents
	// and reports news; with news the agent continues if mayGoOn.
	Settle(ctx context.Context, mayGoOn bool) (news bool, err error)
	// End ends all working agents.
	End()
}

// Child describes an agent started by another.
type Child struct {
	ID   string
	Role job.Role
	// Place holds the child's own copy of the tree; nil if it shares its starter's tree.
	Place *confine.Place
	// Mine says of a path below the root of the checkout whether the agent may change it.
	Mine func(path string) bool

	// Told describes the child to hooks.
	Told hooks.Subagent

	of   *Agent
	with *toolbox // of that
}

// Start returns an agent that works beside a. It gets those of a's tools that are agent-ci's own.
// o holds the options that differ from a's.
func (a *Agent) Start(ctx context.Context, c Child, o Options) (*Agent, error) {
	if a.tools == nil {
		return nil, agents.Refusef("No agent can be started now.")
	}
	c.of, c.with = a, a.tools
	o.Record, o.Workspace, o.Sandboxes, o.Began, o.Hooks, o.Before, o.Child = a.Record, a.Workspace, a.Sandboxes, a.Began, a.Hooks, a.Before, &c
	o.Model.Profile.Code = false
	return New(ctx, o)
}

// SoFar is the conversation of the agent as its last request had it, as far as a model can read it.
func (a *Agent) SoFar(model string) []json.RawMessage { return a.conversation.SoFar(model) }

// Begin begins the conversation of a started agent with items and a message.
func (a *Agent) Begin(items []json.RawMessage, message string) error {
	a.conversation.Begin(items...)
	return a.conversation.Hear(message)
}

// Facts returns the briefing without the task.
func (a *Agent) Facts() []json.RawMessage { return a.facts }

// Own returns the options for merging into the run's tree; nil for an idle agent or a copy.
func (a *Agent) Own() *workspace.Own {
	if a.tools == nil || !a.inRunsTree() {
		return nil
	}
	return &workspace.Own{Keep: a.keepMerge}
}

// inRunsTree says whether the agent works in the tree of the agent of the run, and in no copy of it.
func (a *Agent) inRunsTree() bool { return a.Place().Scratch == confine.AgentScratch }

// Price of the agent's model; nil when it is not known.
func (a *Agent) Price() *price.List { return a.Model.Profile.Price }

// Limit sets the budget of an idle agent.
func (a *Agent) Limit(l agent.Limits) { a.conversation.Limits = l }

// Limits returns the agent's limits.
func (a *Agent) Limits() agent.Limits { return a.conversation.Limits }

// Sandbox returns the sandbox of the agent's commands; nil while idle.
func (a *Agent) Sandbox() *sandbox.Sandbox {
	if a.tools == nil {
		return nil
	}
	return a.tools.sandbox
}

// Place returns the place of the agent's commands.
func (a *Agent) Place() confine.Place {
	switch {
	case a.Child == nil:
		return confine.Agent()
	case a.Child.Place != nil:
		return *a.Child.Place
	}
	return a.Child.of.Place()
}

// writes says whether the agent may change files.
func (a *Agent) writes() bool { return a.Child == nil || a.Child.Role.Writes != job.WritesNone }

// equipChild makes the tools of a started agent. Without its own place it shares its starter's
// tree.
func (a *Agent) equipChild(ctx context.Context) error {
	a.hooked = a.Child.of.hooked
	if a.Child.Place == nil {
		a.tools = &toolbox{seen: a.Child.with.seen, lent: true}
		if a.writes() {
			a.tools.sandbox = a.Child.with.sandbox
		}
	} else {
		box := sandbox.Later(ctx, a.Sandboxes.Options(*a.Child.Place))
		a.tools = &toolbox{sandbox: box, seen: a.see(box)}
	}
	if err := a.useTools(ctx, a.tools); err != nil {
		return err
	}
	if a.Child.Place == nil && a.writes() {
		a.conversation.Tools.InLineWith = a.Child.of.conversation.Tools
	}
	return nil
}

// openCopy opens a folder of the agent's copy.
func openCopy(tree, path string) (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(tree, filepath.FromSlash(path)) + "/") // which waits for no pipe
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	return root, nil
}

// ofRunAlone reports whether only the agent of the run has a tool: for its plan, and for questions to people.
func ofRunAlone(name string) bool { return name == questionTool || dialect.Is(name, dialect.Plans) }

// mayChild reports whether a started agent has a tool.
func (a *Agent) mayChild(name string) bool {
	allow := a.Child.of.Job.Tools.Allow
	switch own := a.Child.Role.Tools; {
	case ofRunAlone(name), a.suits.names(a.Child.of.Job.Tools.Deny, name), len(allow) > 0 && !a.suits.names(allow, name) && !dialect.Is(name, dialect.Leads):
		return false
	case !a.writes() && (dialect.Is(name, dialect.Commands) || changesFiles(name)):
		return false
	case len(own) > 0 && !dialect.Is(name, dialect.Leads):
		return a.suits.names(own, name)
	}
	return true
}

// childTools removes tools forbidden to a started agent.
func (a *Agent) childTools(all []tools.Tool) []tools.Tool {
	return slices.DeleteFunc(all, func(t tools.Tool) bool { return !a.mayChild(t.Spec.Name) })
}

// teamTools returns the tools for managing started agents; none without a team.
func (a *Agent) teamTools() []tools.Tool {
	if a.Team == nil {
		return nil
	}
	return a.Team.Tools()
}

// settleTeam waits for started agents at the agent's end, and reports whether the agent continues
// with their news.
func (a *Agent) settleTeam(ctx context.Context, mayGoOn bool) (bool, error) {
	if a.Team == nil {
		return false, nil
	}
	return a.Team.Settle(ctx, mayGoOn)
}

// mayGoOn says whether the agent gets a further turn.
func (a *Agent) mayGoOn() bool {
	return a.NearlySpent() == nil && (a.Model.Left == nil || a.Model.Left())
}

// whyNotMine tells the model why it must leave a path below the working directory as it is.
func (a *Agent) whyNotMine(full string) string {
	if a.Child == nil || a.Child.Mine == nil || a.Child.Mine(full) {
		return ""
	}
	return full + " is not one of the paths that you may change; leave it as it is, and say in your last message what should change there."
}

// instructions appends a role's instructions to the general orders.
func instructions(orders string, role job.Role) string {
	if strings.TrimSpace(role.Instructions) == "" {
		return orders
	}
	return orders + "\n\n" + role.Instructions
}
