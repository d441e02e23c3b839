package tools

import "slices"

// own are the names of all tools of agent-ci, whichever of them a run has.
var own = slices.Concat([]string{"update_plan", "read_file", "list_dir", "grep_files", "view_image"}, commands, []string{
	"apply_patch", "request_user_input", "load_skill", "exec", "wait", "js_repl", "js_repl_reset",
	"tool_search", "search_tool_bm25",
	"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource",
	"get_memory", "propose_lesson",
}, agents, openCode)

// openCode are the tools that a model has in the place of those, under the names of OpenCode;
// bash is among the commands, and task among those that lead agents.
var openCode = []string{"edit", "write", "read", "glob", "grep", "list", "todowrite", "todoread"}

// OpenCode are the names of tools that a model knows from OpenCode, but for those that run commands
// and lead agents.
func OpenCode() []string { return slices.Clone(openCode) }

// Edits says whether the tool of agent-ci that has a name changes files by itself, and is not
// apply_patch.
func Edits(name string) bool { return name == "edit" || name == "write" }

// ofAgents are the namespaces of tools by which a model leads other agents.
var ofAgents = []string{"multi_agent_v1", "collaboration"}

// Named is the name by which a call of a tool in a namespace is answered. The wait of one that
// leads agents is not that for a script.
func Named(namespace, name string) string {
	if name == "wait" && slices.Contains(ofAgents, namespace) {
		return "wait_agent"
	}
	return name
}

var commands = []string{"exec_command", "write_stdin", "shell_command", "shell", "bash"}

// agents are the tools by which a model leads other agents.
var agents = []string{
	"spawn_agent", "send_input", "resume_agent", "wait_agent", "close_agent", "merge_agent",
	"send_message", "followup_task", "interrupt_agent", "list_agents", "task",
}

// LeadingAgents are the names of the tools of agent-ci by which a model leads other agents.
func LeadingAgents() []string { return slices.Clone(agents) }

// LeadsAgents says whether the tool of agent-ci that has a name is for leading other agents.
func LeadsAgents(name string) bool { return slices.Contains(agents, name) }

// Commands are the names of the tools of agent-ci that run commands.
func Commands() []string { return slices.Clone(commands) }

// RunsCommands says whether the tool of agent-ci that has a name runs commands.
func RunsCommands(name string) bool { return slices.Contains(commands, name) }

// Means says whether a name, which may be one that other agents give to a tool, is that of a tool.
func Means(name, tool string) bool {
	other := aliasOf(ownName(name))
	return name == tool || other != nil && slices.Contains(other.targets, tool)
}

// Taken says what a name stands for already: a tool of agent-ci, by its own name or by one
// that other agents give it. It is empty for a name that a tool from outside may have.
func Taken(name string) string {
	name = ownName(name)
	if slices.Contains(own, name) {
		return name
	}
	if other := aliasOf(name); other != nil {
		return other.targets[0]
	}
	return ""
}
