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

// Team are the agents that an agent may start.
type Team interface {
	agents.Team
	// Begin says that the agent works from here on, until End.
	Begin(ctx context.Context)
	// Tools are by what the model leads them.
	Tools() []tools.Tool
	// Used is what they have used of the budgets of the agent, or may yet.
	Used() agent.Used
	// Settle is asked when the agent has ended, by itself or by a budget: it waits for those that still
	// work, and says whether there is news for the agent, which then goes on if it may.
	Settle(ctx context.Context, mayGoOn bool) (news bool, err error)
	// End ends those that still work.
	End()
}

// Child says who an agent is that another one started.
type Child struct {
	ID   string
	Role job.Role
	// Place is where its commands work, in a copy of what the other works in; nil where it sees,
	// or changes, what that works in.
	Place *confine.Place
	// Mine says of a path below the root of the checkout whether the agent may change it.
	Mine func(path string) bool

	// Told is what hooks are told of it.
	Told hooks.Subagent

	of   *Agent
	with *toolbox // of that
}

// Start makes an agent that a started, to work beside it: with its tools, as far as these are
// agent-ci's own, and its conversation so far where it is to have that. o has what is not as
// that of a.
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

// Begin begins the conversation of an agent that another one started, with what it is told.
func (a *Agent) Begin(items []json.RawMessage, message string) error {
	a.conversation.Begin(items...)
	return a.conversation.Hear(message)
}

// Facts are what the agent was told of the run, without its task.
func (a *Agent) Facts() []json.RawMessage { return a.facts }

// Own is what is done where the agent takes something over into the tree that the agent of the run works
// in; nil while it does not work, and for a copy.
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

// Limit gives the agent its budget. It must not be at work.
func (a *Agent) Limit(l agent.Limits) { a.conversation.Limits = l }

// Limits are those of the agent.
func (a *Agent) Limits() agent.Limits { return a.conversation.Limits }

// Sandbox is that of the agent's commands, and Place where it is; nil while it does not work.
func (a *Agent) Sandbox() *sandbox.Sandbox {
	if a.tools == nil {
		return nil
	}
	return a.tools.sandbox
}

// Place is where the commands of the agent work.
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

// equipChild makes the tools of an agent that another one started. Where it has no place of its
// own it has the tree of that one.
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

// openCopy opens a folder of the copy that the agent works in.
func openCopy(tree, path string) (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(tree, filepath.FromSlash(path)) + "/") // which waits for no pipe
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	return root, nil
}

// ofRunAlone reports whether only the agent of the run has a tool: for its plan, and for questions to people.
func ofRunAlone(name string) bool { return name == questionTool || dialect.Is(name, dialect.Plans) }

// mayChild says whether an agent that another one started has a tool.
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

// childTools are those of tools that an agent has which another one started.
func (a *Agent) childTools(all []tools.Tool) []tools.Tool {
	return slices.DeleteFunc(all, func(t tools.Tool) bool { return !a.mayChild(t.Spec.Name) })
}

// teamTools are those by which the agent leads others; none where it may start none.
func (a *Agent) teamTools() []tools.Tool {
	if a.Team == nil {
		return nil
	}
	return a.Team.Tools()
}

// settleTeam waits at the end of the agent for those that it started, and says whether the agent
// goes on with what came of them.
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

// instructions are those of a role behind what every agent is told.
func instructions(orders string, role job.Role) string {
	if strings.TrimSpace(role.Instructions) == "" {
		return orders
	}
	return orders + "\n\n" + role.Instructions
}
