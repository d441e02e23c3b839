// Package dialect is the one table of what each tool of agent-ci is: its kind, its family, the names
// that other agents give it, and its name and arguments in Claude Code, which hooks see. It imports
// nothing of ours, so that aliases, hooks, jobs, reports and the worker can all read it.
package dialect

import (
	"cmp"
	"slices"
	"strings"
)

// Kind says what a tool does.
type Kind int

// The kinds of tools.
const (
	Other     Kind = iota
	Commands       // runs commands
	Patches        // applies patches
	Edits          // changes one file
	Plans          // writes or reads the plan
	Looks          // reads, lists and searches files
	Leads          // leads other agents
	Scripts        // runs JavaScript that calls other tools
	Resources      // reaches what servers of tools have besides tools
)

// OpenCode is the family of tools that models know from OpenCode.
const OpenCode = "opencode"

// Tool is one tool of agent-ci.
type Tool struct {
	Name   string
	Kind   Kind
	Family string // of another agent, in whose place the tool is offered; empty for agent-ci's own
	// Names are those that other agents give it, in lower case.
	Names []string
	// Claude is its name in Claude Code; empty where Claude Code has no such tool.
	Claude string
	// Renamed are its arguments that Claude Code names otherwise, by agent-ci's names.
	Renamed map[string]string
	// Path and Command are the arguments that hold the path of a file and the command.
	Path, Command string
}

// Names of tools that agent-ci treats by themselves.
const (
	ApplyPatch       = "apply_patch"
	WriteStdin       = "write_stdin"
	RequestUserInput = "request_user_input"
)

var (
	shells = []string{
		"bash", "sh", "shell", "shell_command", "local_shell", "container.exec", "command", "execute", "run", "run_command", "exec",
		"exec_command", "execute_command", "run_shell_command", "run_terminal_cmd", "terminal",
	}
	plans   = []string{"todowrite", "todo_write", "write_todos", "todo", "plan", "update_plan"}
	reads   = []string{"read", "read_file", "view", "view_file", "open_file", "cat"}
	lists   = []string{"ls", "list", "list_dir", "list_directory", "list_files"}
	greps   = []string{"grep", "rg", "ripgrep", "grep_search", "search", "search_files", "search_file_content", "grep_files"}
	globs   = []string{"glob", "find_files", "file_search"}
	include = map[string]string{"include": "glob"}
)

// Tools are all tools of agent-ci. Of several that a name stands for, the first that a run offers
// answers.
var Tools = []Tool{
	{Name: "update_plan", Kind: Plans, Names: plans, Claude: "TodoWrite"},
	{Name: "read_file", Kind: Looks, Names: reads, Claude: "Read", Path: "file_path"},
	{Name: "list_dir", Kind: Looks, Names: lists, Claude: "LS", Renamed: map[string]string{"dir_path": "path"}},
	{Name: "grep_files", Kind: Looks, Names: slices.Concat(greps, globs), Claude: "Grep", Renamed: include},
	{Name: "view_image", Names: []string{"read_image", "open_image"}, Claude: "Read", Renamed: map[string]string{"path": "file_path"}, Path: "path"},
	{Name: "exec_command", Kind: Commands, Names: shells, Claude: "Bash", Command: "cmd"},
	{Name: WriteStdin, Kind: Commands, Claude: "Bash", Command: "chars"},
	{Name: "shell_command", Kind: Commands, Names: shells, Claude: "Bash", Command: "command"},
	{Name: "shell", Kind: Commands, Names: shells, Claude: "Bash", Command: "command"},
	{Name: "bash", Kind: Commands, Family: OpenCode, Names: shells, Claude: "Bash", Command: "command"},
	{Name: ApplyPatch, Kind: Patches, Names: []string{"applypatch", "patch"}},
	{Name: RequestUserInput, Names: []string{"askuserquestion", "ask_user_question", "ask_user", "ask", "question", "ask_followup_question"}},
	{Name: "load_skill", Names: []string{"skill", "use_skill", "activate_skill"}},
	{Name: "exec", Kind: Scripts},
	{Name: "wait"},
	{Name: "js_repl", Kind: Scripts},
	{Name: "js_repl_reset"},
	{Name: "tool_search"},
	{Name: "search_tool_bm25"},
	{Name: "list_mcp_resources", Kind: Resources},
	{Name: "list_mcp_resource_templates", Kind: Resources},
	{Name: "read_mcp_resource", Kind: Resources},
	{Name: "get_memory"},
	{Name: "propose_lesson"},
	{Name: "spawn_agent", Kind: Leads},
	{Name: "send_input", Kind: Leads},
	{Name: "resume_agent", Kind: Leads},
	{Name: "wait_agent", Kind: Leads, Names: []string{"wait"}},
	{Name: "close_agent", Kind: Leads},
	{Name: "merge_agent", Kind: Leads},
	{Name: "send_message", Kind: Leads},
	{Name: "followup_task", Kind: Leads},
	{Name: "interrupt_agent", Kind: Leads},
	{Name: "list_agents", Kind: Leads},
	{Name: "task", Kind: Leads, Family: OpenCode, Claude: "Task"},
	{
		Name: "edit", Kind: Edits, Family: OpenCode, Claude: "Edit", Path: "filePath",
		Renamed: map[string]string{"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"},
	},
	{Name: "write", Kind: Edits, Family: OpenCode, Claude: "Write", Path: "filePath", Renamed: map[string]string{"filePath": "file_path"}},
	{Name: "read", Kind: Looks, Family: OpenCode, Names: reads, Claude: "Read", Path: "filePath", Renamed: map[string]string{"filePath": "file_path"}},
	{Name: "glob", Kind: Looks, Family: OpenCode, Names: globs, Claude: "Glob"},
	{Name: "grep", Kind: Looks, Family: OpenCode, Names: greps, Claude: "Grep", Renamed: include},
	{Name: "list", Kind: Looks, Family: OpenCode, Names: lists, Claude: "LS"},
	{Name: "todowrite", Kind: Plans, Family: OpenCode, Names: plans, Claude: "TodoWrite"},
	{Name: "todoread", Kind: Plans, Family: OpenCode},
}

// Of returns the tool of that name; the zero Tool with that name for one that is not agent-ci's.
func Of(name string) Tool {
	if i := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return Tools[i]
	}
	return Tool{Name: name}
}

// Known reports whether agent-ci has a tool of that name.
func Known(name string) bool {
	return slices.ContainsFunc(Tools, func(t Tool) bool { return t.Name == name })
}

// Is reports whether the tool of that name is of one of the kinds.
func Is(name string, kinds ...Kind) bool { return slices.Contains(kinds, Of(name).Kind) && Known(name) }

// Named are the names of the tools of a kind.
func Named(kind Kind) []string { return names(func(t Tool) bool { return t.Kind == kind }) }

// InFamily are the names of the tools of a family that are of one of the kinds.
func InFamily(family string, kinds ...Kind) []string {
	return names(func(t Tool) bool { return t.Family == family && slices.Contains(kinds, t.Kind) })
}

func names(of func(Tool) bool) (all []string) {
	for _, t := range Tools {
		if of(t) {
			all = append(all, t.Name)
		}
	}
	return all
}

// Called are the names of the tools to which other agents give a name, whatever its case.
func Called(name string) []string {
	name = strings.ToLower(name)
	return names(func(t Tool) bool { return slices.Contains(t.Names, name) })
}

// Hooked is the name by which hooks know the tool: Claude Code's where that has one.
func (t Tool) Hooked() string {
	return cmp.Or(t.Claude, t.Name)
}

// AsClaude returns arguments by the names that Claude Code has for them.
func (t Tool) AsClaude(arguments map[string]any) map[string]any {
	renamed := make(map[string]any, len(arguments))
	for name, value := range arguments {
		renamed[cmp.Or(t.Renamed[name], name)] = value
	}
	return renamed
}

// Matched are the names by which a hook may name the tool. Who guards one tool that runs commands
// guards all, who guards patches guards edits too, and a patch is matched as the edits of its files.
func (t Tool) Matched() []string {
	switch t.Kind {
	case Commands:
		return append(Named(Commands), t.Claude)
	case Edits:
		return []string{t.Name, t.Claude, ApplyPatch}
	case Patches:
		return append(OfFile("Edit"), OfFile("Write")...)
	}
	return []string{t.Name, t.Hooked()}
}

// OfFile are the names by which a hook may name a change of one file by a patch: that of Claude Code's
// tool, which is Edit or Write, those of tools that do the same, and that of patches.
func OfFile(claude string) []string {
	return append(names(func(t Tool) bool { return t.Kind == Edits && t.Claude == claude }), claude, ApplyPatch)
}
