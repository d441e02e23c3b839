package job

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRolesExtendBuiltInRoles(t *testing.T) {
	j := mustLoad(t, jobFile(start+"agents: {enabled: true, roles: {explorer: {effort: low}, tester: {writes: shared}, other: {instructions: Look.}}}\n"))
	must.Same(t, []string{"explorer", "worker", "other", "tester"}, j.Agents.RoleNames(), "the result")
	for name, want := range map[string]string{"explorer": WritesNone, "worker": WritesOwn, "tester": WritesShared, "other": WritesNone} {
		role, known := j.Agents.Role(name)
		if !known || role.Writes != want {
			t.Errorf("%s is %+v, %t", name, role, known)
		}
	}
	if role, _ := j.Agents.Role("explorer"); role.Effort != "low" || !strings.HasPrefix(role.Instructions, "You look things up.") {
		t.Errorf("the explorer is %+v", role)
	}
	if _, known := j.Agents.Role("nobody"); known {
		t.Error("a role that the job does not name is known")
	}
}

func TestRefusesInvalidAgents(t *testing.T) {
	for text, want := range map[string]string{
		"agents: {most: 0}":                       "agents.most: must be between 1 and 16",
		"agents: {depth: 9}":                      "agents.depth: must be between 1 and 4",
		"agents: {roles: {x: {writes: all}}}":     `agents.roles.x.writes: "all" is not one of`,
		"agents: {roles: {x: {efort: low}}}":      "agents.roles.x.efort: unknown key",
		"agents: {roles: {'a b': {effort: low}}}": "a b",
		"tools: {deny: [grep_files]}\nagents: {roles: {x: {tools: [grep_files]}}}": "agents.roles.x.tools[0]: is in tools.deny",
	} {
		wantProblem(t, text, want)
	}
}
