package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

// Agents configures subagents: whether the agent may start them, and in which roles.
type Agents struct {
	Enabled bool            `json:"enabled" about:"true: the agent may start others."`
	MaxOpen int             `json:"most" span:"1..16" default:"4" about:"How many may be open at once, including finished ones."`
	Depth   int             `json:"depth" span:"1..4" default:"1" about:"How deep agents may start others. 1: only the agent of the run does."`
	Wait    Duration        `json:"wait" default:"5m" about:"How long the run waits for the others when the agent has finished. Then they are stopped."`
	Roles   map[string]Role `json:"roles" names:"server_name" most:"max_roles" example:"{tester: {instructions: You write tests., writes: own}}" about:"Roles of agents by name, besides explorer (reads only) and worker (changes a copy), whose settings you can change."`
}

// Role configures one kind of subagent.
type Role struct {
	Instructions string   `json:"instructions" form:"not_blank" about:"Text that agents of this role get before their task. Empty: that of the built-in role."`
	Model        string   `json:"model" form:"one_line" about:"Model of the role, at the same API. Empty: that of the agent that starts it."`
	Effort       string   `json:"effort" values:"$efforts" about:"Reasoning effort. Empty: that of the agent that starts it."`
	Tools        []string `json:"tools" form:"tool_name" example:"[read_file, grep_files]" about:"Built-in tools that the role may call, of those that its starter has. Empty: all."`
	Writes       string   `json:"writes" values:"|none|own|shared" about:"What the role may change: nothing, its own copy (merged later), or its starter's work tree. Empty: the built-in role's setting."`
}

// What an agent of a role may change.
const (
	WritesNone   = "none"
	WritesOwn    = "own"    // a copy of its starter's workspace
	WritesShared = "shared" // its starter's workspace
)

// The built-in roles.
const (
	roleExplorer = "explorer"
	roleWorker   = "worker"
)

const maxRoles = 32

var builtinRoles = map[string]Role{
	roleExplorer: {
		Writes:       WritesNone,
		Instructions: "You look things up. You change nothing. Answer the question that you were given, with the paths and lines that bear it out, and no more.",
	},
	roleWorker: {
		Writes:       WritesOwn,
		Instructions: "You make one part of a change. Others make other parts at the same time: change nothing beside your part, and undo nothing that you did not do.",
	},
}

// RoleNames returns the names of all roles: the built-in ones first, then the job's own, sorted.
func (a Agents) RoleNames() []string {
	ownNames := slices.DeleteFunc(slices.Sorted(maps.Keys(a.Roles)), func(name string) bool { _, builtin := builtinRoles[name]; return builtin })
	return append([]string{roleExplorer, roleWorker}, ownNames...)
}

// Role returns the role called name, completed from the built-in one. known is false for other names.
func (a Agents) Role(name string) (role Role, known bool) {
	builtin, isBuiltin := builtinRoles[name]
	settings, isOwn := a.Roles[name]
	settings.Instructions = cmp.Or(settings.Instructions, builtin.Instructions)
	settings.Writes = cmp.Or(settings.Writes, builtin.Writes, WritesNone)
	return settings, isBuiltin || isOwn
}

// checkAgents rejects role tools listed in tools.deny.
func (d *validator) checkAgents() {
	for _, name := range slices.Sorted(maps.Keys(d.job.Agents.Roles)) {
		for i, tool := range d.job.Agents.Roles[name].Tools {
			d.reportEach(config.JoinPath("agents.roles", name, "tools", i), mistake{slices.Contains(d.job.Tools.Deny, tool), "", "is in tools.deny, which holds for every agent"})
		}
	}
}
