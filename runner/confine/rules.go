package confine

import (
	"sync/atomic"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
)

// Commands are the rules on the agent's commands, by the level that was reached
// and by what the sandbox lets them write.
func (s *Sandboxes) Commands() policy.Commands {
	return policy.Commands{
		Rules: s.Rules, Confined: s.level() != sandbox.LevelNone, Home: s.Environ.Home(),
		Writable: s.Options(Agent()).WritableAt(s.level()),
	}
}

// Judge decides on the agent's commands by these rules, and counts what they refuse.
func (s *Sandboxes) Judge() tools.Judge { return judge{s.Commands(), &s.denied} }

type judge struct {
	commands policy.Commands
	denied   *atomic.Int64
}

func (j judge) Judge(asked tools.StartRequest) *tools.Denial {
	d := j.commands.Decide(policy.Request{Argv: asked.Argv, Script: asked.Script, Dir: asked.Dir})
	if d.Action != policy.Refuse {
		return nil
	}
	j.denied.Add(1)
	return &tools.Denial{Rule: d.Rule, Words: d.Words()}
}
