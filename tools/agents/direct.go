package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// directGroup is where models that call tools themselves look for those of agents.
var directGroup = tools.Namespace{Name: "multi_agent_v1", Description: "Tools that start other agents and lead them."}

// Direct are the tools in the form for models that call tools themselves: spawn_agent, send_input,
// resume_agent, wait_agent, close_agent, merge_agent.
func Direct(s Setup) []tools.Tool {
	l := newLead(s, directGroup)
	return []tools.Tool{
		l.tool("spawn_agent", whenToSpawn+" Returns the agent's id at once, while it works; you are told when it ends."+s.about(), closed(
			[]string{
				messageSchema, itemsSchema, roleSchema, `"fork_context":{"type":"boolean","description":"Whether the agent knows this conversation. Defaults to false: tell it all that it needs."}`,
				modelSchema, tierSchema, pathsSchema,
			}), l.spawnDirect),
		l.tool("send_input", "Gives an agent a message. One that has ended goes on with it.", closed(
			[]string{targetSchema, messageSchema, itemsSchema, `"interrupt":{"type":"boolean","description":"Whether to break off what the agent is doing. Defaults to false: it reads the message when it can."}`},
			"target"), l.sendInput),
		l.tool("resume_agent", "Opens an agent again that was closed. Give it a task by send_input.", closed([]string{idSchema}, "id"), l.resume),
		l.scripted("wait_agent", "Waits until one of some agents has ended, and returns the status of those that have. "+
			"Wait only when you can't go on without them. The change of a worker that has completed is taken over into your tree then, and merged says what came of it.",
			closed([]string{`"targets":{"type":"array","items":{"type":"string"},"description":"Ids of agents."}`, timeoutSchema}, "targets"), l.waitDirect),
		l.scripted("close_agent", "Ends an agent and all that it started, and makes room for another: one that has completed counts until it is closed. "+
			"The change of a worker that has completed is taken over before.", closed([]string{targetSchema}, "target"), l.close),
		l.mergeTool(),
	}
}

// The parts of schemas that several tools have.
const (
	messageSchema = `"message":{"type":"string","description":"What the agent is to do, or to know."}`
	roleSchema    = `"agent_type":{"type":"string","description":"The agent's role."}`
	modelSchema   = `"model":{"type":"string","description":"Its model, where it is to be another."},` +
		`"reasoning_effort":{"type":"string","description":"Its reasoning effort, where that is to be another."}`
	tierSchema    = `"service_tier":{"type":"string","description":"Its tier of service, where that is to be another."}`
	pathsSchema   = `"paths":{"type":"array","items":{"type":"string"},"description":"Files and folders that it alone may change; nothing else of its change is taken over. Without them, all."}`
	targetSchema  = `"target":{"type":"string","description":"The agent's id."}`
	idSchema      = `"id":{"type":"string","description":"The agent's id."}`
	timeoutSchema = `"timeout_ms":{"type":"number","description":"How long to wait at most, in milliseconds: 10000 to 3600000, by default 30000. Longer waits cost less than many short ones."}`
)

// closed is the schema of an object that has these properties and no others.
func closed(properties []string, required ...string) json.RawMessage {
	list, _ := json.Marshal(append([]string{}, required...)) // of texts, which never fails
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":` + string(list) + `,"additionalProperties":false}`)
}

// spawning are the arguments of spawn_agent in either form.
type spawning struct {
	words
	Name   string   `json:"task_name"`
	Role   string   `json:"agent_type"`
	Fork   bool     `json:"fork_context"`
	Turns  *string  `json:"fork_turns"`
	Model  string   `json:"model"`
	Effort string   `json:"reasoning_effort"`
	Tier   string   `json:"service_tier"`
	Paths  []string `json:"paths"`
}

func (l *lead) spawnDirect(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a spawning
	if err := call.Arguments(&a); err != nil {
		return tools.Result{}, err
	}
	id, nickname, err := l.spawn(ctx, a, a.Fork)
	if err != nil {
		return refused(err)
	}
	return answer(struct {
		ID       string  `json:"agent_id"`
		Nickname *string `json:"nickname"`
	}{id, given(nickname)})
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// spawn starts an agent.
func (l *lead) spawn(ctx context.Context, a spawning, fork bool) (id, nickname string, err error) {
	text, problem := a.text()
	if problem == "" {
		problem = l.problemOfRole(a.Role)
	}
	if problem != "" {
		return "", "", Refusef("spawn_agent: %s.", problem)
	}
	if a.Role == noRole {
		a.Role = ""
	}
	return l.Team.Spawn(ctx, Order{
		Name: a.Name, Role: a.Role, Message: text, Fork: fork, Model: a.Model, Effort: a.Effort, ServiceTier: a.Tier, Paths: a.Paths,
	})
}

// noRole is the name by which models ask for no role.
const noRole = "default"

func (l *lead) problemOfRole(name string) string {
	names := make([]string, len(l.Roles))
	for i, role := range l.Roles {
		if names[i] = role.Name; role.Name == name {
			return ""
		}
	}
	if name == "" || name == noRole {
		return ""
	}
	return fmt.Sprintf("there is no agent_type %s; there are %s", tools.Visible(name, 100), strings.Join(append(names, noRole), ", "))
}

func (l *lead) sendInput(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a struct {
		words
		Target    string `json:"target"`
		Interrupt bool   `json:"interrupt"`
	}
	if err := call.Arguments(&a); err != nil {
		return tools.Result{}, err
	}
	text, problem := a.text()
	if problem != "" {
		return tools.Refuse("send_input: " + problem + "."), nil
	}
	submission, err := l.Team.Send(ctx, a.Target, text, a.Interrupt)
	if err != nil {
		return refused(err)
	}
	return answer(map[string]string{"submission_id": submission})
}

func (l *lead) resume(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a struct{ ID string }
	if err := call.Arguments(&a); err != nil {
		return tools.Result{}, err
	}
	status, err := l.Team.Resume(ctx, a.ID)
	if err != nil {
		return refused(err)
	}
	return answer(map[string]Status{"status": status.shown(mostText)})
}

func (l *lead) waitDirect(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a struct {
		Targets []string `json:"targets"`
		Timeout *float64 `json:"timeout_ms"`
	}
	if err := call.Arguments(&a); err != nil {
		return tools.Result{}, err
	}
	if len(a.Targets) == 0 {
		return tools.Refuse("wait_agent: targets is empty; name the agents to wait for by the ids that spawn_agent returned."), nil
	}
	statuses, timedOut, err := l.Team.Wait(ctx, a.Targets, patience(a.Timeout))
	if err != nil {
		return refused(err)
	}
	if id := nowhere(statuses); id != "" {
		return refused(Unknown(id))
	}
	shown := make(map[string]Status, len(statuses))
	for id, status := range statuses {
		shown[id] = status.shown(mostText / len(statuses))
	}
	return answer(struct {
		Statuses map[string]Status `json:"status"`
		TimedOut bool              `json:"timed_out"`
		Merged   map[string]string `json:"merged,omitempty"`
	}{shown, timedOut, said(l.mergeAll(ctx, a.Targets))})
}

// nowhere is the id of an agent that is not there, where none of them is.
func nowhere(statuses map[string]Status) (id string) {
	for other, status := range statuses {
		if status.State != NotFound {
			return ""
		}
		id = max(id, other)
	}
	return id
}

func (l *lead) close(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a struct{ Target string }
	if err := call.Arguments(&a); err != nil {
		return tools.Result{}, err
	}
	merged := l.mergeAll(ctx, []string{a.Target})
	if words := l.whyOpen(a.Target, merged); words != "" {
		return tools.Refuse(words), nil
	}
	previous, err := l.Team.Close(ctx, a.Target)
	if err != nil {
		return refused(err)
	}
	return answer(struct {
		Previous Status            `json:"previous_status"`
		Merged   map[string]string `json:"merged,omitempty"`
	}{previous.shown(mostText), said(merged)})
}
