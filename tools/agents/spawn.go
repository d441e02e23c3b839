package agents

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// spawnArguments are the arguments of spawn_agent in either form.
type spawnArguments struct {
	messageArguments
	Name   string   `json:"task_name"`
	Role   string   `json:"agent_type"`
	Fork   bool     `json:"fork_context"`
	Turns  *string  `json:"fork_turns"`
	Model  string   `json:"model"`
	Effort string   `json:"reasoning_effort"`
	Tier   string   `json:"service_tier"`
	Paths  []string `json:"paths"`
}

// spawn starts a subagent. It returns a *Refusal for invalid arguments.
func (l *leadTools) spawn(ctx context.Context, a spawnArguments) (id, nickname string, err error) {
	text, err := a.text("spawn_agent")
	if err != nil {
		return "", "", err
	}
	if err := l.checkRole(a.Role); err != nil {
		return "", "", err
	}
	if a.Role == noRole {
		a.Role = ""
	}
	return l.Team.Spawn(ctx, Order{
		Name: a.Name, Role: a.Role, Message: text, Fork: a.Fork, Model: a.Model, Effort: a.Effort, ServiceTier: a.Tier, Paths: a.Paths,
	})
}

// noRole is the name by which models ask for no role.
const noRole = "default"

// checkRole returns a *Refusal if there is no role called name. "" and noRole are valid.
func (l *leadTools) checkRole(name string) error {
	if name == "" || name == noRole || l.hasRole(name) {
		return nil
	}
	var names string
	for _, role := range l.Roles {
		names += role.Name + ", "
	}
	return Refusef("spawn_agent: there is no agent_type %s; there are %s.", clip.Visible(name, 100), names+noRole)
}

// numberOfTurns matches a number of last turns, which models may ask for. It counts as "all".
var numberOfTurns = lazyregexp.New(`^[1-9][0-9]*$`)

// forksConversation returns whether fork_turns asks that the subagent gets the conversation so far. It returns a *Refusal for
// an invalid value.
func (a spawnArguments) forksConversation() (fork bool, err error) {
	switch turns := a.Turns; {
	case turns == nil, *turns == "", *turns == "all", numberOfTurns().MatchString(*turns):
		return true, nil
	case *turns == "none":
		return false, nil
	}
	return false, Refusef("spawn_agent: fork_turns has to be all or none.")
}
