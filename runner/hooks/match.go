package hooks

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
)

// concerns says whether a hook is asked of a call of a tool that goes by these names.
func (h Hook) concerns(tool string, call tools.Call, names ...string) bool {
	if !slices.ContainsFunc(names, h.For) && !(slices.Contains(names, allServers) && h.forAServer(tool)) {
		return false
	}
	return len(h.Argv) == 0 || h.runs(tool, call)
}

// names are those that a tool goes by in a form.
func names(compat, tool string, as shaped) []string {
	all := []string{tool}
	if tools.Edits(tool) { // who guards patches guards these
		all = append(all, applyPatch)
	}
	if resourceTools[tool] {
		server, _ := as.Input["server"].(string)
		if server == "" {
			all = append(all, allServers)
		} else {
			all = append(all, allServers+server+"__"+tool)
		}
	}
	if compat == "" {
		return all
	}
	if all = append(all, as.Tool); changesFiles(tool) {
		all = append(all, "Edit", "Write", "MultiEdit")
	}
	return all
}

// changesFiles says whether a tool of agent-ci is asked about by the files that it changes.
func changesFiles(tool string) bool { return tool == applyPatch || tools.Edits(tool) }

// resourceTools reach what servers of tools have besides tools: hooks on the tools of a server are
// asked of its resources as well.
var resourceTools = map[string]bool{"list_mcp_resources": true, "list_mcp_resource_templates": true, "read_mcp_resource": true}

// allServers is the name of a call that is for all servers.
const allServers = "mcp__"

// forAServer says whether the hook is for a tool of resources at some server: that which a pattern
// names. A regular expression may name any.
func (h Hook) forAServer(tool string) bool {
	return slices.ContainsFunc(h.Tools, func(pattern string) bool {
		_, rest, names := strings.Cut(pattern, allServers)
		server, _, _ := strings.Cut(rest, "__")
		one := job.Hook{Tools: []string{pattern}, Compat: h.Compat}
		return names && (strings.ContainsAny(rest, "(){}[]+?\\^$") || one.For(allServers+server+"__"+tool))
	})
}

// runs says whether a command of a call begins with the words of the hook. What can't be told
// counts as if it did, and so does all that is typed into a command.
func (h Hook) runs(tool string, call tools.Call) bool {
	if !tools.RunsCommands(tool) {
		return false
	}
	if tool == writeStdin {
		in, is := typing(tool, call)
		return is && in.Chars != interrupt
	}
	asked, err := command.Of(tool, call)
	return err != nil || slices.ContainsFunc(asked, func(each command.Asked) bool {
		switch {
		case each.Script != "":
			return h.among(shell.ReadScript(each.Script))
		case tool == "exec_command" && !shell.IsShell(each.Argv[0]): // which the model had in the place of a shell
			return true
		}
		return h.among(shell.ReadArgv(each.Argv))
	})
}

// interrupt is what Ctrl-C types.
const interrupt = "\x03"

func (h Hook) among(reading shell.Reading) bool {
	if reading.Excess != "" || len(reading.Commands) == 0 {
		return true
	}
	return slices.ContainsFunc(reading.Commands, func(c shell.Command) bool { return c.Hides() || begins(c.Words, h.Argv) })
}

// begins says whether words are, or may be, a command that begins with argv.
func begins(words []shell.Word, argv []string) bool {
	for i, want := range argv {
		switch {
		case i >= len(words):
			return false
		case !words[i].Known:
			return true // it may hold any number of words
		case words[i].Text == want:
		case i == 0 && !strings.Contains(want, "/") && path.Base(words[0].Text) == want:
		default:
			return false
		}
	}
	return true
}

// on are the hooks of an event, in the order in which they are asked.
func (h *Hooks) on(event string) []Hook {
	if h == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.All), func(one Hook) bool { return one.On != event })
}

// asksOfFiles says that a hook is asked of each file of a patch, as Claude Code asks of edits.
func (h Hook) asksOfFiles() bool {
	return h.Compat == job.CompatClaude && len(h.Argv) == 0
}

// onEdits says that a hook is asked of patches as such, and not as of any call.
func (h Hook) onEdits() bool {
	switch {
	case h.Compat == job.CompatClaude:
		return h.asksOfFiles() && h.concerns(applyPatch, tools.Call{}, applyPatch, "Edit", "Write")
	case len(h.Tools) == 0 || len(h.Argv) > 0:
		return false
	}
	return h.concerns(applyPatch, tools.Call{}, names(h.Compat, applyPatch, shaped{Tool: applyPatch})...)
}
