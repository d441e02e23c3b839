package job

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// hookTools are the tools of agent-ci that hooks can be asked of.
var hookTools = append([]string{
	"update_plan", "read_file", "list_dir", "grep_files", "view_image", "exec_command", "write_stdin", "shell_command", "shell", "apply_patch",
	"request_user_input", "tool_search", "search_tool_bm25", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource",
}, tools.LeadingAgents()...)

// compatTools are names that they go by in the forms of others.
var compatTools = map[string][]string{
	CompatClaude: {"Bash", "Edit", "Write", "MultiEdit", "Read", "LS", "Grep", "Glob", "Task", "TodoWrite"},
	CompatCodex:  {"Bash", "Edit", "Write", "MultiEdit"},
}

// plainMatcher is a matcher of Claude Code and Codex that is names and no regular expression.
var plainMatcher = regexp.MustCompile(`^[A-Za-z0-9_| -]*$`)

// For says whether the hook is for a tool that goes by a name: all are where it names none.
func (h Hook) For(name string) bool {
	return len(h.Tools) == 0 || slices.ContainsFunc(h.Tools, func(pattern string) bool { return h.matches(pattern, name) })
}

// matches says whether a pattern is one of a name. Without the form of another program * stands
// for any text; those of Claude Code and Codex are names, or regular expressions that fit a part.
func (h Hook) matches(pattern, name string) bool {
	switch {
	case h.Compat != "" && pattern == "*":
		return true
	case h.Compat != "" && !plainMatcher.MatchString(pattern):
		expression, err := regexp.Compile(pattern)
		return err != nil || expression.MatchString(name) // one that can't be read is refused before
	}
	return slices.ContainsFunc(strings.Split(pattern, "|"), func(one string) bool {
		return like(strings.ReplaceAll(strings.TrimSpace(one), ".*", "*"), name)
	})
}

// like says whether a name fits a pattern in which * stands for any text.
func like(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	after, found := strings.CutPrefix(name, first)
	if !found {
		return false
	}
	for i := len(after); i >= 0; i-- {
		if like(rest, after[i:]) {
			return true
		}
	}
	return false
}

// mistaken says what is wrong with a pattern of names of tools; empty for nothing. own are the
// names of the job's own tools; whole says that there are no others.
func (h Hook) mistaken(pattern string, own []string, whole bool) string {
	if h.Compat != "" && !plainMatcher.MatchString(pattern) && pattern != "*" {
		if _, err := regexp.Compile(pattern); err != nil {
			return "is no regular expression (" + err.Error() + ")"
		}
	}
	known := slices.Concat(hookTools, compatTools[h.Compat], own)
	if h.Compat == "" { // the forms of others have names of their own for these
		known = slices.Concat(known, tools.OpenCode(), []string{"bash"})
	}
	if slices.ContainsFunc(known, func(name string) bool { return h.matches(pattern, name) }) || strings.Contains(pattern, "mcp") {
		return ""
	}
	never := "fits no tool, so that the hook would never be asked"
	for _, form := range []string{h.Compat, CompatClaude} {
		for _, name := range slices.Concat(hookTools, compatTools[form]) {
			switch same := strings.EqualFold(pattern, name); {
			case same && form == h.Compat:
				return never + "; say " + name
			case same:
				return never + "; " + name + " is a name of Claude Code, which goes with compat: claude"
			case form == h.Compat && strings.HasPrefix(pattern, name+"("):
				return never + "; say " + name + ", and the words of commands as argv"
			}
		}
	}
	if !whole && plainMatcher.MatchString(pattern) && pattern != "" {
		return "" // it may be a tool of a job that is not known here
	}
	return never
}

// fitMatchers complains of patterns of tools by which a hook would never be asked.
func (d *decoder) fitMatchers(path string, h Hook) {
	var own []string
	for _, tool := range d.job.Tools.Dynamic {
		own = append(own, tool.Name)
	}
	for _, pattern := range h.Tools {
		if wrong := h.mistaken(pattern, own, slices.Contains(d.kinds, File)); wrong != "" {
			d.complainAt(d.placeOf(path+".tools", path), path+".tools", `"`+pattern+`" `+wrong, "")
		}
	}
}
