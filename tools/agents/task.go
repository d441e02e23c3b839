package agents

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
)

// Task returns the tools for models that know OpenCode: task, which starts a subagent and waits for its end, and
// merge_agent, for a change that task could not merge.
func Task(s Setup) []tools.Tool {
	l := newLead(s, tools.Namespace{})
	return []tools.Tool{
		l.unorderedTool("task", "Has another agent do a task, waits until it has ended, and returns its last words. Its change is taken over into your tree. "+
			"The agent does not know this conversation: tell it all that it needs, and what it is to tell you."+s.describeTypes(), closedSchema([]string{
			`"description":{"type":"string","description":"What the task is, in 3 to 5 words."}`,
			`"prompt":{"type":"string","description":"The task."}`,
			`"subagent_type":{"type":"string","description":"The kind of agent."}`,
			`"task_id":{"type":"string","description":"Of a task before, whose agent goes on with this one. Leave it out for another agent."}`,
		}, "description", "prompt", "subagent_type"), tools.Decoded(l.task)),
		l.mergeTool(),
	}
}

// TaskDetail is the key of the subagent's ID in the recorded detail of a finished task.
const TaskDetail = "task_id"

// generalType is OpenCode's agent for any task. exploreType is its agent for reading.
const (
	generalType = "general"
	exploreType = "explore"
)

// describeTypes returns the part of the tool's description about the kinds of subagents.
func (s Setup) describeTypes() string {
	return " subagent_type is one of:\n- " + generalType + ": for any task." + s.listRoles()
}

type taskArguments struct {
	Prompt string `json:"prompt"`
	Type   string `json:"subagent_type"`
	ID     string `json:"task_id"`
}

// task runs the tool task: a subagent does a task, and task waits for its end, merges its change, and returns its last
// message.
func (l *leadTools) task(ctx context.Context, _ tools.Call, a taskArguments) (tools.Result, error) {
	id, err := l.startOrContinue(ctx, a.ID, a.Prompt, a.Type)
	if err != nil {
		return tools.Result{}, err
	}
	status, err := l.awaitEnd(ctx, id)
	if err != nil {
		return tools.Result{}, err
	}
	var merged tools.Result
	for _, result := range l.mergeAll(ctx, []string{id}) { // at most one; its key is the ID even if id is a nickname
		merged = result
	}
	output := fmt.Sprintf("task_id: %s\n\n<task_result>\n%s\n</task_result>\n", id, clip.Visible(status.Text, maxText))
	if status.State != Completed {
		output += "The agent did not complete it: " + status.State + ".\n"
	}
	if merged.Output != "" {
		output += merged.Output + "\n"
	}
	if merged.Failed {
		output += "Do away with what is in the way, and call " + mergeName + " with the task_id as id to try again.\n"
	}
	return tools.Result{Output: output, Failed: merged.Failed || status.State != Completed, Detail: map[string]any{TaskDetail: id}}, nil
}

// startOrContinue sends a task to the subagent id, or starts one of this type on it if id is "". It returns the
// subagent's ID.
func (l *leadTools) startOrContinue(ctx context.Context, id, prompt, agentType string) (agentID string, err error) {
	text, err := messageArguments{Message: prompt}.text("task")
	if err != nil {
		return "", err
	}
	if id != "" {
		_, err = l.Team.Send(ctx, id, text, false)
		return id, err
	}
	role, known := l.roleOf(agentType)
	if !known {
		return "", Refusef("task: there is no subagent_type %s.%s", clip.Visible(agentType, 100), l.describeTypes())
	}
	id, _, err = l.Team.Spawn(ctx, Order{Role: role, Message: text})
	return id, err
}

// roleOf returns the name of the role for a subagent_type. That is "" for the general type, unless a role has this name.
func (l *leadTools) roleOf(agentType string) (role string, known bool) {
	const explorer = "explorer"
	switch {
	case l.hasRole(agentType):
		return agentType, true
	case agentType == exploreType && l.hasRole(explorer):
		return explorer, true
	}
	return "", agentType == generalType
}

// awaitEnd waits until a subagent has ended, and returns its status.
func (l *leadTools) awaitEnd(ctx context.Context, id string) (Status, error) {
	for {
		statuses, _, err := l.Team.Wait(ctx, []string{id}, maxWait)
		if err != nil {
			return Status{}, err
		}
		switch status, exists := statuses[id]; {
		case exists && status.State == NotFound:
			return status, Unknown(id)
		case exists && status.Ended():
			return status, nil
		}
		if err := ctx.Err(); err != nil {
			return Status{}, err
		}
	}
}
