// Package dialect is the table of agent-ci's tools: their kind, their family, their names in other agents, and their
// names and arguments in Claude Code, which hooks see. It imports no other package of agent-ci, so that all can use it.
package dialect

import (
	"cmp"
	"slices"
	"strings"
)

// Kind classifies a tool by what it does.
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
	Resources      // lists and reads the resources of MCP servers
)

// OpenCode is the family of OpenCode's tools.
const OpenCode = "opencode"

// NotFromScript ends the refusal of a call that scripts may not make. Such a call does not count for the limit.
const NotFromScript = " cannot be called from a script. Call it yourself."

// Tool is one tool of agent-ci.
type Tool struct {
	Name   string
	Kind   Kind
	Family string // the other coding agent that the tool imitates; empty for agent-ci's own tools
	// Names lists the tool's names in other agents, in lower case.
	Names []string
	// Claude is the tool's name in Claude Code, or "".
	Claude string
	// Renamed maps arguments to Claude Code's names.
	Renamed map[string]string
	// Path, Command and Patch are the names of the arguments with a file's path, a command and a patch, or "".
	Path, Command, Patch string
	// Takes lists the arguments that have other names or shapes in other agents, in order of precedence.
	Takes []Argument
	// With is the tool that this one is always offered with.
	With string
}

// Argument is an argument of a tool.
type Argument struct {
	Name string
	Also []string // its names in other agents
	As   Shape
}

// Shape is the form of an argument's value here. Values in other agents' forms are converted to it.
type Shape int

// The shapes of arguments.
const (
	AsWritten Shape = iota
	Line            // a command as one line of a shell
	Vector          // a command as a list of words
	Steps           // the steps of a plan
	Todos           // the items of a todo list
	List            // a list; one text is accepted, too
	Questions       // a list of questions; one text is accepted, too
	Glob            // a glob; under the other names it is a file type such as "go"
)

// Names of tools with special treatment.
const (
	ApplyPatch       = "apply_patch"
	ExecCommand      = "exec_command"
	Shell            = "shell"
	ShellCommand     = "shell_command"
	WriteStdin       = "write_stdin"
	RequestUserInput = "request_user_input"
	LoadSkill        = "load_skill"
	Exec             = "exec"
	Wait             = "wait"
	WaitAgent        = "wait_agent"
	SendInput        = "send_input"
	FollowupTask     = "followup_task"
	UpdatePlan       = "update_plan"
	ReadFile         = "read_file"
	ListDir          = "list_dir"
	GrepFiles        = "grep_files"
	GlobTool         = "glob"
	GrepTool         = "grep"
	ViewImage        = "view_image"
	ToolSearch       = "tool_search"
	Task             = "task"
)

// Tools of Claude Code with special treatment.
const (
	ClaudeBash  = "Bash"
	ClaudeEdit  = "Edit"
	ClaudeWrite = "Write"
)

var (
	shells = strings.Fields("bash sh shell shell_command local_shell container.exec command execute run run_command exec exec_command " +
		"execute_command run_shell_command run_terminal_cmd terminal")
	plans   = strings.Fields("todowrite todo_write write_todos todo plan update_plan")
	reads   = strings.Fields("read read_file view view_file open_file cat")
	lists   = strings.Fields("ls list list_dir list_directory list_files")
	greps   = strings.Fields("grep rg ripgrep grep_search search search_files search_file_content grep_files")
	globs   = strings.Fields("glob find_files file_search")
	include = map[string]string{"include": "glob"}

	pattern = slices.Concat(takes("pattern query regex", "include glob include_pattern"), takesAs(Glob, "include type"), takes("path directory dir_path"))
	byID    = takes("id agent_id target")
	named   = takes("target id agent_name")
)

// takes returns arguments. Each text is an argument's name, followed by its names in other agents.
func takes(arguments ...string) (all []Argument) {
	for _, names := range arguments {
		all = append(all, takesAs(AsWritten, names)...)
	}
	return all
}

// takesAs returns one argument with a shape. names are its name and its names in other agents.
func takesAs(shape Shape, names string) []Argument {
	words := strings.Fields(names)
	return []Argument{{words[0], words[1:], shape}}
}

// takesCommand returns the arguments of a tool that runs commands. names are the names of the command itself.
func takesCommand(shape Shape, names string) []Argument {
	return append(takesAs(shape, names), takes("workdir cwd", "timeout_ms timeout")...)
}

// Tools lists all tools of agent-ci. If several have a name in another agent, the first one offered answers.
var Tools = []Tool{
	{Name: UpdatePlan, Kind: Plans, Names: plans, Claude: "TodoWrite", Takes: takesAs(Steps, "plan todos steps")},
	{
		Name: ReadFile, Kind: Looks, Names: reads, Claude: "Read", Path: "file_path",
		Takes: takes("file_path path filePath absolute_path target_file file"),
	},
	{Name: ListDir, Kind: Looks, Names: lists, Claude: "LS", Renamed: map[string]string{"dir_path": "path"}, Takes: takes("dir_path path directory dirPath")},
	{
		Name: GrepFiles, Kind: Looks, Names: slices.Concat(greps, globs), Claude: "Grep", Renamed: include,
		Takes: slices.Concat(pattern, takes("limit head_limit max_results", "ignore_case -i case_insensitive")),
	},
	{
		Name: ViewImage, Names: strings.Fields("read_image open_image"), Claude: "Read", Renamed: map[string]string{"path": "file_path"}, Path: "path",
		Takes: takes("path file_path filePath image_path"),
	},
	{Name: ExecCommand, Kind: Commands, Names: shells, Claude: ClaudeBash, Command: "cmd", Takes: takesCommand(Line, "cmd command script")},
	{Name: WriteStdin, Kind: Commands, Claude: ClaudeBash, Command: "chars", With: ExecCommand},
	{Name: ShellCommand, Kind: Commands, Names: shells, Claude: ClaudeBash, Command: "command", Takes: takesCommand(Line, "command cmd script")},
	{Name: Shell, Kind: Commands, Names: shells, Claude: ClaudeBash, Command: "command", Takes: takesCommand(Vector, "command cmd script")},
	{
		Name: "bash", Kind: Commands, Family: OpenCode, Names: shells, Claude: ClaudeBash, Command: "command",
		Takes: append(takesAs(Line, "command cmd script"), takes("workdir cwd", "timeout timeout_ms")...),
	},
	{Name: ApplyPatch, Kind: Patches, Names: strings.Fields("applypatch patch"), Patch: "input", Takes: takes("input patch patchText")},
	{
		Name: RequestUserInput, Names: strings.Fields("askuserquestion ask_user_question ask_user ask question ask_followup_question"),
		Takes: takesAs(Questions, "questions question"),
	},
	{Name: LoadSkill, Names: strings.Fields("skill use_skill activate_skill"), Takes: takes("name skill skill_name")},
	{Name: Exec, Kind: Scripts},
	{Name: Wait},
	{Name: "js_repl", Kind: Scripts},
	{Name: "js_repl_reset"},
	{Name: ToolSearch},
	{Name: "search_tool_bm25"},
	{Name: "list_mcp_resources", Kind: Resources},
	{Name: "list_mcp_resource_templates", Kind: Resources},
	{Name: "read_mcp_resource", Kind: Resources},
	{Name: "get_memory"},
	{Name: "propose_lesson"},
	{Name: "spawn_agent", Kind: Leads, Takes: takes("message prompt task", "agent_type role subagent_type")},
	{Name: SendInput, Kind: Leads, Takes: takes("target id agent_id")},
	{Name: "resume_agent", Kind: Leads, Takes: byID},
	{Name: WaitAgent, Kind: Leads, Names: strings.Fields("wait"), Takes: takesAs(List, "targets ids agent_ids target id agent_id")},
	{Name: "close_agent", Kind: Leads, Takes: takes("target id agent_id")},
	{Name: "merge_agent", Kind: Leads, Takes: byID},
	{Name: "send_message", Kind: Leads, Takes: named},
	{Name: FollowupTask, Kind: Leads, Takes: named},
	{Name: "interrupt_agent", Kind: Leads, Takes: named},
	{Name: "list_agents", Kind: Leads},
	{Name: Task, Kind: Leads, Family: OpenCode, Claude: "Task", Takes: takes("prompt message task", "subagent_type agent_type role")},
	{
		Name: "edit", Kind: Edits, Family: OpenCode, Claude: ClaudeEdit, Path: "filePath",
		Renamed: map[string]string{"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"},
		Takes:   takes("filePath file_path path", "oldString old_string old_str", "newString new_string new_str", "replaceAll replace_all"),
	},
	{
		Name: "write", Kind: Edits, Family: OpenCode, Claude: ClaudeWrite, Path: "filePath", Renamed: map[string]string{"filePath": "file_path"},
		Takes: takes("filePath file_path path", "content contents file_text text"),
	},
	{
		Name: "read", Kind: Looks, Family: OpenCode, Names: reads, Claude: "Read", Path: "filePath", Renamed: map[string]string{"filePath": "file_path"},
		Takes: takes("filePath file_path path absolute_path target_file file"),
	},
	{Name: GlobTool, Kind: Looks, Family: OpenCode, Names: globs, Claude: "Glob", Takes: takes("pattern query include", "path directory dir_path")},
	{Name: GrepTool, Kind: Looks, Family: OpenCode, Names: greps, Claude: "Grep", Renamed: include, Takes: pattern},
	{Name: "list", Kind: Looks, Family: OpenCode, Names: lists, Claude: "LS", Takes: takes("path dir_path directory dirPath")},
	{Name: "todowrite", Kind: Plans, Family: OpenCode, Names: plans, Claude: "TodoWrite", Takes: takesAs(Todos, "todos plan steps")},
	{Name: "todoread", Kind: Plans, Family: OpenCode},
}

// Distinct calls nameIn for all tools, and returns the results that are not "", without duplicates.
func Distinct(nameIn func(Tool) string) (all []string) {
	for _, t := range Tools {
		if name := nameIn(t); name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Together returns a tool's name, followed by the names of the tools that are always offered with it.
func Together(name string) []string {
	return names(func(t Tool) bool { return t.Name == name || t.With == name && name != "" })
}

// Of returns agent-ci's tool called name. For any other name it returns a Tool with only that name.
func Of(name string) Tool {
	if i := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return Tools[i]
	}
	return Tool{Name: name}
}

// Known reports whether agent-ci has a tool called name.
func Known(name string) bool {
	return slices.ContainsFunc(Tools, func(t Tool) bool { return t.Name == name })
}

// Is reports whether name is a tool of agent-ci of one of these kinds.
func Is(name string, kinds ...Kind) bool { return slices.Contains(kinds, Of(name).Kind) && Known(name) }

// NamesOfKind returns the names of all tools of a kind.
func NamesOfKind(kind Kind) []string { return names(func(t Tool) bool { return t.Kind == kind }) }

// Families returns the names of the other coding agents whose tools agent-ci imitates.
func Families() []string { return Distinct(func(t Tool) string { return t.Family }) }

// NamesInFamily returns the names of the tools of a family that have one of these kinds.
func NamesInFamily(family string, kinds ...Kind) []string {
	return names(func(t Tool) bool { return t.Family == family && slices.Contains(kinds, t.Kind) })
}

// names returns the names of the tools for which selects returns true.
func names(selects func(Tool) bool) (all []string) {
	for _, t := range Tools {
		if selects(t) {
			all = append(all, t.Name)
		}
	}
	return all
}

// NamesByAlias returns the names of agent-ci's tools that have this name in another agent. Case does not matter.
func NamesByAlias(name string) []string {
	name = strings.ToLower(name)
	return names(func(t Tool) bool { return slices.Contains(t.Names, name) })
}

// Hooked returns the name by which hooks see the tool: its name in Claude Code, or else its own.
func (t Tool) Hooked() string {
	return cmp.Or(t.Claude, t.Name)
}

// AsClaude returns the tool's arguments under their names in Claude Code.
func (t Tool) AsClaude(arguments map[string]any) map[string]any {
	renamed := make(map[string]any, len(arguments))
	for name, value := range arguments {
		renamed[cmp.Or(t.Renamed[name], name)] = value
	}
	return renamed
}

// Matched returns the names by which the matchers of hooks can select the tool. Any command tool is selected by the name
// of any other, an edit tool also by apply_patch, and the patch tool by the names of the edit tools.
func (t Tool) Matched() []string {
	switch t.Kind {
	case Commands:
		return append(NamesOfKind(Commands), t.Claude)
	case Edits:
		return []string{t.Name, t.Claude, ApplyPatch}
	case Patches:
		return append(EditNames(ClaudeEdit, ClaudeWrite), ApplyPatch)
	}
	return []string{t.Name, t.Hooked()}
}

// EditNames returns the names of these edit tools of Claude Code, and of agent-ci's tools that correspond to them.
func EditNames(claudeTools ...string) []string {
	return append(names(func(t Tool) bool { return t.Kind == Edits && slices.Contains(claudeTools, t.Claude) }), claudeTools...)
}
