package assembly

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/memory"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/skill"
)

// editFormats maps model.tools to the format of edits in the text of a model without tools.
var editFormats = map[string]editformat.Format{
	job.ToolsAiderDiff:  editformat.Diff,
	job.ToolsAiderUdiff: editformat.Udiff,
	job.ToolsAiderWhole: editformat.Whole,
}

// Prefixes of lines in a read block that name a skill or lesson instead of a file.
const (
	skillLine  = "skill:"
	lessonLine = "lesson:"
)

// writingPhrases describes how a model without tools writes the usual actions as blocks of text.
func writingPhrases(f editformat.Format) briefing.ActionPhrases {
	return briefing.ActionPhrases{
		Tools: "without tools: what you write is read, and done", Plan: "write a `plan` block", Edit: "with edits as text, in the form below",
		Skill:   "load the skill before you begin, and no other, by a `read` block with the line " + skillLine + "NAME",
		Lessons: "a `read` block with the line " + lessonLine + "ID tells one whole",
		Read:    "by a `read` block",
		Form:    "# How to write what you want done\n\n" + editformat.Instructions(f) + "\n" + furtherFormText,
	}
}

// furtherFormText explains to a model without tools how the runner treats its text.
const furtherFormText = "Files are shown with the number of each line before it (`L12: `), which is no part of the line. A command runs to its end, for ten minutes at most; nobody can type into it. " +
	"What comes of an answer is the next message: plan, edits, files and commands, in this order. Words about blocks, or of others, belong into a fence of `text` that is longer than any in them: your last message has no block of any other kind.\n"

// WrittenParserFor returns the parser for edits and commands in the model's text, in the job's format. It returns nil
// if the model calls tools.
func WrittenParserFor(m job.Model) agent.WrittenParser {
	f, writesText := editFormats[m.Tools]
	if !writesText {
		return nil
	}
	return func(text string) []tools.Call { return callsOf(editformat.Parse(f, text), text) }
}

// callsOf converts a parsed answer to tool calls, in this order: the plan, one call for all edits, reads, commands. text
// is the unparsed answer. The call for the edits gets all of it, and parses it once more. So it can report the problems, too.
func callsOf(a editformat.Answer, text string) []tools.Call {
	var calls []tools.Call
	add := func(name string, arguments any) {
		input, _ := json.Marshal(arguments) // encoding strings cannot fail
		calls = append(calls, tools.Call{Name: name, Input: string(input)})
	}
	if a.Plan != nil {
		steps := make([]plan.Step, len(a.Plan))
		for i, step := range a.Plan {
			steps[i] = plan.Step(step)
		}
		add(dialect.UpdatePlan, map[string]any{"plan": steps})
	}
	if len(a.Edits)+len(a.Problems) > 0 {
		calls = append(calls, tools.Call{Name: patchTool, Input: text})
	}
	for _, line := range a.Reads {
		if name, isSkill := strings.CutPrefix(line, skillLine); isSkill {
			add(skill.Name, map[string]string{"name": strings.TrimSpace(name)})
		} else if id, isLesson := strings.CutPrefix(line, lessonLine); isLesson {
			add(memory.GetName, map[string]string{"memory_id": strings.TrimSpace(id)})
		} else {
			add(dialect.ReadFile, map[string]string{"file_path": line})
		}
	}
	for _, script := range a.Commands {
		add(provider.WrittenCommands, map[string]string{"command": script})
	}
	return calls
}

// shownFiles lists the files that a model without tools has read or changed.
type shownFiles struct {
	mu    sync.Mutex
	names []string
}

// paths returns the paths of the files, relative to the working directory.
func (s *shownFiles) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

// add adds the files in the recorded detail of a call, and removes those that it deleted.
func (s *shownFiles) add(detail json.RawMessage) error {
	var shown struct {
		Path  string // the file read
		Files []struct{ Op, Path string }
	}
	if err := json.Unmarshal(detail, &shown); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range shown.Files {
		s.names = slices.DeleteFunc(s.names, func(known string) bool { return known == file.Path })
		if file.Op != "D" {
			s.names = append(s.names, file.Path)
		}
	}
	if shown.Path != "" && !slices.Contains(s.names, shown.Path) {
		s.names = append(s.names, shown.Path)
	}
	return nil
}

// fileShowingTools lists the tools whose calls show files to a model without tools.
var fileShowingTools = []string{dialect.ReadFile, patchTool}

// withShownFiles returns the tools. For a model without tools, it makes those of fileShowingTools add the files that
// they show to a.shownFiles.
func (a *Agent) withShownFiles(all []tools.Tool) []tools.Tool {
	for i, tool := range all {
		if !a.Job.Model.WritesTextOnly() || !slices.Contains(fileShowingTools, tool.Spec.Name) {
			continue
		}
		all[i].Run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
			result, err := tool.Run(ctx, call)
			if err != nil || result.Failed {
				return result, err
			}
			if tool.Spec.Name != patchTool {
				result.Detail = a.readDetail(call)
			}
			detail, err := json.Marshal(result.Detail)
			if err != nil {
				return result, err
			}
			return result, a.shownFiles.add(detail)
		}
	}
	return all
}

// readDetail returns the detail to record for a read_file call: the path, relative to the working directory if it is
// below that. It returns nil for invalid arguments.
func (a *Agent) readDetail(call tools.Call) map[string]any {
	var read struct {
		Path string `json:"file_path"`
	}
	if call.Arguments(&read) != nil {
		return nil
	}
	if inside, isBelow := tools.Below(a.workDir(), read.Path); isBelow && filepath.IsAbs(read.Path) {
		read.Path = inside
	}
	return map[string]any{"path": path.Clean(filepath.ToSlash(read.Path))}
}
