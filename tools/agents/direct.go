package agents

import (
	"context"

	"github.com/agent-ci/agent-ci/tools"
)

// directGroup is the namespace of agent tools for models that call tools directly.
var directGroup = tools.Namespace{Name: "multi_agent_v1", Description: "Tools that start other agents and lead them."}

// Direct returns the tools for models that call tools directly: spawn_agent, send_input,
// resume_agent, wait_agent, close_agent, merge_agent.
func Direct(s Setup) []tools.Tool {
	l := newLead(s, directGroup)
	return []tools.Tool{
		l.tool("spawn_agent", whenToSpawn+" Returns the agent's id at once, while it works; you are told when it ends."+s.describeRoles()+howToLead, closedSchema(
			[]string{
				messageSchema, itemsSchema, roleSchema, `"fork_context":{"type":"boolean","description":"Whether the agent knows this conversation. Defaults to false: tell it all that it needs."}`,
				modelSchema, tierSchema, pathsSchema,
			}), tools.Decoded(l.spawnDirect)),
		l.unorderedTool("send_input", "Gives an agent a message. One that has ended goes on with it.", closedSchema(
			[]string{targetSchema, messageSchema, itemsSchema, `"interrupt":{"type":"boolean","description":"Whether to break off what the agent is doing. Defaults to false: it reads the message when it can."}`},
			"target"), tools.Decoded(l.sendInput)),
		l.tool("resume_agent", "Opens an agent again that was closed: it still knows its conversation, and a worker has its copy. Give it a task by send_input.", closedSchema([]string{idSchema}, "id"), tools.Decoded(l.resume)),
		l.unorderedTool("wait_agent", "Waits until one of some agents has ended, and returns the status of those that have. "+
			"Wait only when you can't go on without them. The change of a worker that has completed is taken over into your tree then, and merged says what came of it.",
			closedSchema([]string{`"targets":{"type":"array","items":{"type":"string"},"description":"Ids or nicknames of agents."}`, timeoutSchema}, "targets"), tools.Decoded(l.waitDirect)),
		l.unorderedTool("close_agent", "Ends an agent and all that it started, and makes room for another: one that has completed counts until it is closed. "+
			"The change of a worker that has completed is taken over before.", closedSchema([]string{targetSchema}, "target"), tools.Decoded(l.close)),
		l.mergeTool(),
	}
}

// spawnDirect runs spawn_agent.
func (l *leadTools) spawnDirect(ctx context.Context, _ tools.Call, a spawnArguments) (tools.Result, error) {
	id, nickname, err := l.spawn(ctx, a)
	return jsonResult(map[string]string{"agent_id": id, "nickname": nickname}, err)
}

type sendInputArguments struct {
	messageArguments
	Target    string `json:"target"`
	Interrupt bool   `json:"interrupt"`
}

// sendInput runs send_input.
func (l *leadTools) sendInput(ctx context.Context, _ tools.Call, a sendInputArguments) (tools.Result, error) {
	text, err := a.text("send_input")
	if err != nil {
		return tools.Result{}, err
	}
	submission, err := l.Team.Send(ctx, a.Target, text, a.Interrupt)
	return jsonResult(map[string]string{"submission_id": submission}, err)
}

// resume runs resume_agent.
func (l *leadTools) resume(_ context.Context, _ tools.Call, a struct{ ID string }) (tools.Result, error) {
	status, err := l.Team.Resume(a.ID)
	return jsonResult(map[string]Status{"status": status.withTextUpTo(maxText)}, err)
}

// waitArguments are the arguments of wait_agent in either form.
type waitArguments struct {
	Targets []string `json:"targets"`
	Timeout *float64 `json:"timeout_ms"`
}

// waitDirect runs wait_agent: it waits until one of the named subagents has ended, and merges the changes of the completed
// ones.
func (l *leadTools) waitDirect(ctx context.Context, _ tools.Call, a waitArguments) (tools.Result, error) {
	if len(a.Targets) == 0 {
		return tools.Refuse("wait_agent: targets is empty; name the agents to wait for by the ids or nicknames that spawn_agent returned."), nil
	}
	statuses, timedOut, err := l.Team.Wait(ctx, a.Targets, waitTimeout(a.Timeout))
	if err != nil {
		return tools.Result{}, err
	}
	shown := make(map[string]Status, len(statuses))
	for id, status := range statuses {
		shown[id] = status.withTextUpTo(maxText / len(statuses))
	}
	result, err := jsonResult(struct {
		Statuses map[string]Status `json:"status"`
		TimedOut bool              `json:"timed_out"`
		Merged   map[string]string `json:"merged,omitempty"`
	}{shown, timedOut, mergeMessages(l.mergeAll(ctx, a.Targets))}, nil)
	result.Failed = noneExists(statuses)
	return result, err
}

// noneExists reports whether there are statuses, and all say that the subagent does not exist.
func noneExists(statuses map[string]Status) bool {
	for _, status := range statuses {
		if status.State != NotFound {
			return false
		}
	}
	return len(statuses) > 0
}

// close runs close_agent: it merges a subagent's change and stops it. If the merge fails, the subagent stays open until
// a second call, because closing it loses the change.
func (l *leadTools) close(ctx context.Context, _ tools.Call, a struct{ Target string }) (tools.Result, error) {
	merged := l.mergeAll(ctx, []string{a.Target})
	if warning := l.lossWarning(a.Target, merged); warning != "" {
		return tools.Refuse(warning), nil
	}
	previous, err := l.Team.Close(a.Target)
	return jsonResult(struct {
		Previous Status            `json:"previous_status"`
		Merged   map[string]string `json:"merged,omitempty"`
	}{previous.withTextUpTo(maxText), mergeMessages(merged)}, err)
}
