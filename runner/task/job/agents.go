package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

// Agents configures subagents: whether the agent may start them, and in which roles.
type Agents struct {
	Enabled bool            `json:"enabled"`
	Most    int             `json:"most"`  // at once
	Depth   int             `json:"depth"` // of agents below the one of the run
	Wait    Duration        `json:"wait"`  // for those that still work when the one that started them has ended
	Roles   map[string]Role `json:"roles"`
}

// Role configures one kind of subagent.
type Role struct {
	Instructions string   `json:"instructions"`
	Model        string   `json:"model"`  // empty for that of the one that starts it
	Effort       string   `json:"effort"` // likewise
	Tools        []string `json:"tools"`  // empty for all
	Writes       string   `json:"writes"` // WritesNone and so on; empty for that of the built-in role, or none
}

// What an agent of a role may change.
const (
	WritesNone   = "none"
	WritesOwn    = "own"    // a copy of its starter's workspace
	WritesShared = "shared" // its starter's workspace
)

// The built-in roles.
const (
	RoleExplorer = "explorer"
	RoleWorker   = "worker"
)

const maxRoles = 32

var builtinRoles = map[string]Role{
	RoleExplorer: {
		Writes:       WritesNone,
		Instructions: "You look things up. You change nothing. Answer the question that you were given, with the paths and lines that bear it out, and no more.",
	},
	RoleWorker: {
		Writes:       WritesOwn,
		Instructions: "You make one part of a change. Others make other parts at the same time: change nothing beside your part, and undo nothing that you did not do.",
	},
}

// RoleNames returns the names of all roles: the built-in ones first, then the job's own, sorted.
func (a Agents) RoleNames() []string {
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(a.Roles)), func(name string) bool { _, builtin := builtinRoles[name]; return builtin })
	return append([]string{RoleExplorer, RoleWorker}, own...)
}

// Role returns the role called name, completed from the built-in role of that name. It is false for
// an unknown name.
func (a Agents) Role(name string) (Role, bool) {
	builtin, isBuiltin := builtinRoles[name]
	own, isOwn := a.Roles[name]
	own.Instructions = cmp.Or(own.Instructions, builtin.Instructions)
	own.Writes = cmp.Or(own.Writes, builtin.Writes, WritesNone)
	return own, isBuiltin || isOwn
}

// fitAgents rejects role tools listed in tools.deny.
func (d *checks) fitAgents() {
	for _, name := range slices.Sorted(maps.Keys(d.job.Agents.Roles)) {
		for i, tool := range d.job.Agents.Roles[name].Tools {
			d.wrongEach(config.At("agents.roles", name, "tools", i), mistake{slices.Contains(d.job.Tools.Deny, tool), "", "is in tools.deny, which holds for every agent"})
		}
	}
}
