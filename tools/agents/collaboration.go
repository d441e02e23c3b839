package agents

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/tools"
)

// collaborationGroup is the namespace of agent tools for models that call tools in scripts.
var collaborationGroup = tools.Namespace{Name: "collaboration", Description: "Tools that start other agents and lead them. They cannot be called from scripts."}

// Collaboration returns the tools for models that call tools in scripts: spawn_agent, send_message,
// followup_task, wait_agent, interrupt_agent, list_agents, merge_agent.
func Collaboration(s Setup) []tools.Tool {
	l := newLead(s, collaborationGroup)
	return []tools.Tool{
		l.tool("spawn_agent", whenToSpawn+" Returns the agent's name, a path such as /root/look, at once, while it works; its answer comes as a message."+s.describeRoles(), closedSchema(
			[]string{
				`"task_name":{"type":"string","description":"A name for the task: lower case letters, digits and underscores."}`, messageSchema, roleSchema,
				`"fork_turns":{"type":"string","description":"How much of this conversation the agent knows: all, the default, or none, which costs less where the message says all that it needs."}`,
				modelSchema, pathsSchema,
			}, "task_name", "message"), tools.Decoded(l.spawnNamed)),
		l.tool("send_message", "Leaves an agent a message, which starts no turn: it reads it in the turn that it has or in its next.", letterSchema, tools.Decoded(l.sendMessage)),
		l.tool("followup_task", "Gives an agent a further task. One that has ended goes on with it.", letterSchema, tools.Decoded(l.followUp)),
		l.unorderedTool("wait_agent", "Waits until an agent has news for you: its answer, or that it ended. Wait only when you can't go on without it. The answer comes as a message. "+
			"The changes of workers that have completed are taken over into your tree then, and merged says what came of them.", closedSchema([]string{timeoutSchema}), tools.Decoded(l.waitAny)),
		l.unorderedTool("interrupt_agent", "Breaks off what an agent is doing. It stays open for messages and tasks.", closedSchema([]string{namedSchema}, "target"), tools.Decoded(l.interrupt)),
		l.tool("list_agents", "Lists the agents and their statuses.", closedSchema(
			[]string{`"path_prefix":{"type":"string","description":"Only agents whose name begins with this."}`}), tools.Decoded(l.list)),
		l.mergeTool(),
	}
}

const namedSchema = `"target":{"type":"string","description":"The agent's name, as spawn_agent returned it."}`

var letterSchema = closedSchema([]string{namedSchema, `"message":{"type":"string","description":"What to tell it."}`}, "target", "message")

// taskName matches valid task names. They become parts of subagent IDs, which are paths.
var taskName = lazyregexp.New(`^[a-z0-9_]{1,64}$`)

// spawnNamed runs spawn_agent with a task name.
func (l *leadTools) spawnNamed(ctx context.Context, _ tools.Call, a spawnArguments) (tools.Result, error) {
	if !taskName().MatchString(a.Name) || a.Name == "root" {
		return tools.Refuse("spawn_agent: task_name has to be of 1 to 64 lower case letters, digits and underscores, and not root."), nil
	}
	var err error
	if a.Fork, err = a.forksConversation(); err != nil {
		return tools.Result{}, err
	}
	id, _, err := l.spawn(ctx, a)
	return jsonResult(map[string]string{"task_name": id}, err)
}

// letterArguments are the arguments of send_message and followup_task.
type letterArguments struct {
	messageArguments
	Target string `json:"target"`
}

// sendMessage runs send_message.
func (l *leadTools) sendMessage(_ context.Context, call tools.Call, a letterArguments) (tools.Result, error) {
	return a.deliver(call, func(text string) error { return l.Team.Note(a.Target, text) })
}

// followUp runs followup_task.
func (l *leadTools) followUp(ctx context.Context, call tools.Call, a letterArguments) (tools.Result, error) {
	return a.deliver(call, func(text string) error {
		_, err := l.Team.Send(ctx, a.Target, text, false)
		return err
	})
}

// deliver passes the text of a call's message to send. It returns an error for an invalid message. The result is empty.
func (a letterArguments) deliver(call tools.Call, send func(text string) error) (tools.Result, error) {
	text, err := a.text(call.Name)
	if err != nil {
		return tools.Result{}, err
	}
	return tools.Result{}, send(text)
}

// waitAny runs wait_agent without names: it waits for news of any subagent, and merges the changes of all completed ones.
func (l *leadTools) waitAny(ctx context.Context, _ tools.Call, a waitArguments) (tools.Result, error) {
	_, timedOut, err := l.Team.Wait(ctx, nil, waitTimeout(a.Timeout))
	if err != nil {
		return tools.Result{}, err
	}
	message := "Wait completed."
	if timedOut {
		message = "Wait timed out."
	}
	return jsonResult(struct {
		Message  string            `json:"message"`
		TimedOut bool              `json:"timed_out"`
		Merged   map[string]string `json:"merged,omitempty"`
	}{message, timedOut, mergeMessages(l.mergeAll(ctx, nil))}, nil)
}

// interrupt runs interrupt_agent.
func (l *leadTools) interrupt(_ context.Context, _ tools.Call, a struct{ Target string }) (tools.Result, error) {
	previous, err := l.Team.Interrupt(a.Target)
	return jsonResult(map[string]Status{"previous_status": previous.withTextUpTo(maxText)}, err)
}

type listArguments struct {
	Prefix string `json:"path_prefix"`
}

// list runs list_agents.
func (l *leadTools) list(_ context.Context, _ tools.Call, a listArguments) (tools.Result, error) {
	all := []Listed{}
	for _, agent := range l.Team.List(a.Prefix) {
		agent.Status = agent.Status.withTextUpTo(maxListed)
		agent.LastTask = clip.Visible(agent.LastTask, maxListed)
		all = append(all, agent)
	}
	return jsonResult(map[string][]Listed{"agents": all}, nil)
}

// maxListed is how many bytes of a subagent's task and last words a list shows.
const maxListed = 500
