package agents

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/tools"
)

// Task are the tools for models that know those of OpenCode: task, which starts an agent and waits
// for it, and merge_agent, for a change that could not be taken over then.
func Task(s Setup) []tools.Tool {
	l := newLead(s, tools.Namespace{})
	return []tools.Tool{
		l.scripted("task", "Has another agent do a task, waits until it has ended, and returns its last words. Its change is taken over into your tree. "+
			"The agent does not know this conversation: tell it all that it needs, and what it is to tell you."+s.aboutTypes(), closed([]string{
			`"description":{"type":"string","description":"What the task is, in 3 to 5 words."}`,
			`"prompt":{"type":"string","description":"The task."}`,
			`"subagent_type":{"type":"string","description":"The kind of agent."}`,
			`"task_id":{"type":"string","description":"Of a task before, whose agent goes on with this one. Leave it out for another agent."}`,
		}, "description", "prompt", "subagent_type"), l.task),
		l.mergeTool(),
	}
}

// generalType is the kind of agent that OpenCode has for any task, and exploreType that which only
// reads.
const (
	generalType = "general"
	exploreType = "explore"
)

// aboutTypes tells of the kinds of agents.
func (s Setup) aboutTypes() string {
	words := " subagent_type is one of:\n- " + generalType + ": for any task."
	for _, role := range s.Roles {
		words += fmt.Sprintf("\n- %s: %s", role.Name, role.Text)
	}
	return words
}

func (l *lead) task(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a struct {
		Prompt string `json:"prompt"`
		Type   string `json:"subagent_type"`
		ID     string `json:"task_id"`
	}
	if err := call.Arguments(&a); err != nil {
		return tools.Result{}, err
	}
	id, err := l.begin(ctx, a.ID, a.Prompt, a.Type)
	if err != nil {
		return refused(err)
	}
	status, err := l.toItsEnd(ctx, id)
	if err != nil {
		return refused(err)
	}
	merged := l.mergeAll(ctx, []string{id})[id]
	words := fmt.Sprintf("task_id: %s\n\n<task_result>\n%s\n</task_result>\n", id, tools.Visible(status.Text, mostText))
	if status.State != Completed {
		words += "The agent did not complete it: " + status.State + ".\n"
	}
	if merged.words != "" {
		words += merged.words + "\n"
	}
	if merged.failed { // it stays open, so that the change can be taken over yet
		return tools.Refuse(words + "Call " + mergeName + " with the task_id to try again.\n"), nil
	}
	if _, err := l.Team.Close(ctx, id); err != nil {
		return refused(err)
	}
	return tools.Result{Output: words, Failed: status.State != Completed}, nil
}

// begin starts an agent, or has one go on.
func (l *lead) begin(ctx context.Context, id, prompt, kind string) (string, error) {
	if id != "" {
		if _, err := l.Team.Resume(ctx, id); err != nil {
			return "", err
		}
		_, err := l.Team.Send(ctx, id, prompt, false)
		return id, err
	}
	a := spawning{words: words{Message: prompt}, Role: kind}
	switch {
	case kind == generalType && l.problemOfRole(kind) != "":
		a.Role = noRole
	case kind == exploreType && l.problemOfRole(kind) != "" && l.problemOfRole("explorer") == "":
		a.Role = "explorer"
	}
	id, _, err := l.spawn(ctx, a, false)
	return id, err
}

// toItsEnd waits for an agent.
func (l *lead) toItsEnd(ctx context.Context, id string) (Status, error) {
	for {
		statuses, _, err := l.Team.Wait(ctx, []string{id}, longestWait)
		if err != nil {
			return Status{}, err
		}
		if status, there := statuses[id]; there && status.State == NotFound {
			return status, Unknown(id)
		} else if there && status.Ended() {
			return status, nil
		}
		if err := ctx.Err(); err != nil {
			return Status{}, err
		}
	}
}
