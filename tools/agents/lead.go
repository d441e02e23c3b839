package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/tools"
)

// Setup configures the tools.
type Setup struct {
	Team      Team
	Roles     []Role
	MaxAgents int // maximum number of open subagents
}

// whenToSpawn begins the description of spawn_agent.
const whenToSpawn = "Starts another agent on a task. Do so only where the task, AGENTS.md or a skill asks for it, or where the work clearly falls into parts that can go on side by side; " +
	"do all else yourself. Give each agent one task with an end, and those that write paths that do not overlap."

// howToLead ends the description of spawn_agent for tools with agent ids.
const howToLead = `

Before you start one:
- Plan first. Keep the step that your own next step needs, and give away what can go on beside it.
- A small or tightly coupled task is quicker done by yourself.
The message:
- The agent sees only the message, unless fork_context is true: name the goal, the files, what was tried, and what to answer with.
- Ask an explorer one question with an answer, and trust the answer: do not look for the same again.
- Tell a worker which files are its own, that others work in the same repository, and that it must not undo their changes.
While it works:
- Do other work. Wait for it only when you can't go on without it, and then for a long time instead of many short ones.
- Give an agent that knows the subject the next question by send_input, instead of starting another.
- Close agents that you no longer need.`

// describeRoles returns the part of a tool's description about the roles and the maximum number of subagents.
func (s Setup) describeRoles() string {
	words := fmt.Sprintf(" At most %d agents are open at once.", s.MaxAgents)
	if len(s.Roles) > 0 {
		words += " agent_type is one of:" + s.listRoles()
	}
	return words
}

// listRoles returns a line for each role, with a line break before it.
func (s Setup) listRoles() (lines string) {
	for _, role := range s.Roles {
		lines += fmt.Sprintf("\n- %s: %s", role.Name, role.Text)
	}
	return lines
}

// hasRole reports whether there is a role called name.
func (s Setup) hasRole(name string) bool {
	return slices.ContainsFunc(s.Roles, func(r Role) bool { return r.Name == name })
}

// leadTools holds the state behind the tools by which an agent leads its subagents.
type leadTools struct {
	Setup
	group tools.Namespace

	mu     sync.Mutex
	warned map[string]bool // IDs of subagents whose closing was refused once, because their change could not be merged
}

// newLead returns the state of the tools in a namespace.
func newLead(s Setup, group tools.Namespace) *leadTools {
	return &leadTools{Setup: s, group: group, warned: map[string]bool{}}
}

// runFunc is the type of tools.Tool.Run.
type runFunc func(context.Context, tools.Call) (tools.Result, error)

// tool returns a tool whose calls run alone, in the model's order. If run returns a *Refusal, its text is the result for
// the model.
func (l *leadTools) tool(name, description string, parameters json.RawMessage, run runFunc) tools.Tool {
	spec := tools.Spec{Name: name, Description: description, Parameters: parameters, Namespace: l.group}
	return tools.Tool{Spec: spec, Mutates: true, Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
		result, err := run(ctx, call)
		if refusal, isRefusal := errors.AsType[*Refusal](err); isRefusal {
			return tools.Refuse(refusal.Words), nil
		}
		return result, err
	}}
}

// unorderedTool returns a tool whose calls have no place in the order of calls, since they merge changes or wait for a
// subagent's end. In the order they could wait forever: a subagent in the same tree ends only after its own calls, which could
// be waiting for this one.
func (l *leadTools) unorderedTool(name, description string, parameters json.RawMessage, run runFunc) tools.Tool {
	t := l.tool(name, description, parameters, run)
	t.Mutates, t.Scripts = false, true
	return t
}

const mergeName = "merge_agent"

// mergeTool returns the tool merge_agent.
func (l *leadTools) mergeTool() tools.Tool {
	return l.tool(mergeName, "Takes the change of an agent that has completed over into your tree, three ways, all of it or nothing. It is done by itself when you wait for the agent; "+
		"call this to try again, after you or the agent did away with what was in the way.", closedSchema([]string{idSchema}, "id"), tools.Decoded(l.merge))
}

// merge runs merge_agent.
func (l *leadTools) merge(ctx context.Context, _ tools.Call, a struct{ ID string }) (tools.Result, error) {
	return l.Team.Merge(ctx, a.ID)
}

// mergeAll merges the changes of the completed subagents among ids, or of all if ids is empty. Each merge is a call of
// merge_agent. It returns the results by agent ID.
func (l *leadTools) mergeAll(ctx context.Context, ids []string) map[string]tools.Result {
	calls := tools.ScriptCallsOf(ctx)
	var mu sync.Mutex
	results := map[string]tools.Result{}
	for _, id := range l.Team.Unmerged(ids) {
		input, _ := json.Marshal(map[string]string{"id": id}) // encoding a string cannot fail
		calls.Start(ctx, tools.Call{Name: mergeName, Input: string(input)}, func(result tools.Result) {
			mu.Lock()
			defer mu.Unlock()
			results[id] = result
		})
	}
	calls.Wait()
	return results
}

// mergeMessages returns the outputs of merges by agent ID, or nil if there are none.
func mergeMessages(results map[string]tools.Result) map[string]string {
	if len(results) == 0 {
		return nil
	}
	messages := make(map[string]string, len(results))
	for id, result := range results {
		messages[id] = result.Output
	}
	return messages
}

// lossWarning returns the refusal to close the agent id because its change could not be merged and would be lost. It
// warns only once, and returns "" otherwise. merged are results of mergeAll.
func (l *leadTools) lossWarning(id string, merged map[string]tools.Result) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, agentID := range slices.Sorted(maps.Keys(merged)) {
		if result := merged[agentID]; result.Failed && !l.warned[agentID] {
			l.warned[agentID] = true
			return fmt.Sprintf("close_agent: %s is still open, since its change is not taken over: %s\nCall %s to try again, or close_agent again to close it without its change.", id, result.Output, mergeName)
		}
	}
	return ""
}

// Limits of the time that a wait takes.
const (
	defaultWait = 30 * time.Second
	minWait     = 10 * time.Second
	maxWait     = time.Hour
)

// waitTimeout returns the time to wait for the timeout in a call, which may be nil.
func waitTimeout(milliseconds *float64) time.Duration {
	if milliseconds == nil {
		return defaultWait
	}
	return tools.Milliseconds(*milliseconds, minWait, maxWait)
}

// jsonResult returns a result with value as JSON, or err if it is not nil.
func jsonResult(value any, err error) (tools.Result, error) {
	if err != nil {
		return tools.Result{}, err
	}
	raw, err := plainjson.Marshal(value)
	if err != nil {
		return tools.Result{}, fmt.Errorf("encode what came of it: %w", err)
	}
	return tools.Result{Output: string(raw)}, nil
}
