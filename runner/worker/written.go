package worker

import (
	"encoding/json"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/memory"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/skill"
)

// editFormats are how models write that have no tools, by model.tools.
var editFormats = map[string]editformat.Format{
	job.ToolsAiderDiff:  editformat.Diff,
	job.ToolsAiderUdiff: editformat.Udiff,
	job.ToolsAiderWhole: editformat.Whole,
}

// What begins a line of a read block that is no path.
const (
	skillLine  = "skill:"
	lessonLine = "lesson:"
)

// writingWays are how a model writes what others call tools for.
func writingWays(f editformat.Format) agent.Ways {
	return agent.Ways{
		Tools: "without tools: what you write is read, and done", Plan: "write a `plan` block", Edit: "with edits as text, in the form below",
		Skill:   "load the skill before you begin, and no other, by a `read` block with the line " + skillLine + "NAME",
		Lessons: "a `read` block with the line " + lessonLine + "ID tells one whole",
		Form:    editformat.Instructions(f),
	}
}

// Writing takes apart what a model of the job writes; nil where the model calls tools.
func Writing(m job.Model) agent.Writing {
	f, writes := editFormats[m.Tools]
	if !writes {
		return nil
	}
	return func(text string) []tools.Call { return callsOf(editformat.Parse(f, text), text) }
}

// callsOf are the calls that a model with tools would have made: its plan, its edits all in one,
// what it wants to see, and its commands.
func callsOf(a editformat.Answer, text string) []tools.Call {
	var calls []tools.Call
	add := func(name string, arguments any) {
		input, _ := json.Marshal(arguments) // texts alone, which can be encoded
		calls = append(calls, tools.Call{Name: name, Input: string(input)})
	}
	if a.Plan != nil {
		steps := make([]plan.Step, len(a.Plan))
		for i, step := range a.Plan {
			steps[i] = plan.Step(step)
		}
		add("update_plan", map[string]any{"plan": steps})
	}
	if len(a.Edits)+len(a.Problems) > 0 {
		calls = append(calls, tools.Call{Name: patchTool, Input: text})
	}
	for _, line := range a.Reads {
		if name, is := strings.CutPrefix(line, skillLine); is {
			add(skill.Name, map[string]string{"name": strings.TrimSpace(name)})
		} else if id, is := strings.CutPrefix(line, lessonLine); is {
			add(memory.GetName, map[string]string{"memory_id": strings.TrimSpace(id)})
		} else {
			add("read_file", map[string]string{"file_path": line})
		}
	}
	for _, script := range a.Commands {
		add(writtenCommands, map[string]string{"command": script})
	}
	return calls
}

// writtenCommands runs what a model wrote for a shell, to its end.
const writtenCommands = "shell_command"
