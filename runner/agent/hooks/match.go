package hooks

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// matches reports whether the hook must be asked about a call of a tool. It returns false for the patch tool, because
// ReviewPatch asks about patches.
func (h Hook) matches(tool string, call tools.Call) bool {
	t := dialect.Of(tool)
	if t.Kind == dialect.Patches {
		return false
	}
	names, matchesSomeServer := t.Matched(), false
	if t.Kind == dialect.Resources { // a hook on a server's tools also covers its resources
		if server, _ := objectOf(call)["server"].(string); server != "" {
			names = append(names, serverPrefix+server+"__"+tool)
		} else { // the call is about all servers
			matchesSomeServer = h.mayMatchServer(tool)
		}
	}
	if !matchesSomeServer && !job.FitsTools(h.Tools, names...) {
		return false
	}
	return len(h.Argv) == 0 || h.matchesCommand(tool, call)
}

// serverPrefix begins the names of the tools of MCP servers.
const serverPrefix = "mcp__"

// mayMatchServer reports whether the hook may match a call of a resource tool that names no server. It tries the
// server named in each of the hook's matchers. A regular expression counts as a match.
func (h Hook) mayMatchServer(tool string) bool {
	return slices.ContainsFunc(h.Tools, func(matcher string) bool {
		_, rest, namesServer := strings.Cut(matcher, serverPrefix)
		server, _, _ := strings.Cut(rest, "__")
		isExpression := strings.ContainsAny(rest, "(){}[]+?\\^$")
		return namesServer && (isExpression || job.FitsTools([]string{matcher}, serverPrefix+server+"__"+tool))
	})
}

// matchesPatch reports whether the hook must be asked about edit, a call that patchCalls returned for a patch. A hook
// that names an edit tool is asked about each file, as in Claude Code. A hook that names only apply_patch is asked
// about the whole patch, as in Codex.
func (h Hook) matchesPatch(edit claudeCall) bool {
	fits := func(names ...string) bool { return job.FitsTools(h.Tools, names...) }
	asksPerFile := fits(dialect.EditNames(dialect.ClaudeEdit, dialect.ClaudeWrite)...)
	switch {
	case len(h.Argv) > 0: // the hook is only about commands
		return false
	case edit.tool == dialect.ApplyPatch:
		return !asksPerFile && fits(dialect.ApplyPatch)
	}
	return asksPerFile && fits(append(dialect.EditNames(edit.tool), dialect.ApplyPatch)...)
}

// matchesCommand reports whether a command of the call may begin with the hook's argv. It returns true for commands
// that cannot be parsed, and for text typed into a running command.
func (h Hook) matchesCommand(tool string, call tools.Call) bool {
	if !dialect.Is(tool, dialect.Commands) {
		return false
	}
	if tool == dialect.WriteStdin {
		text := typedText(call)
		return text != "" && text != ctrlC
	}
	requested, err := command.CommandsOf(tool, call)
	return err != nil || slices.ContainsFunc(requested, func(each command.RequestedCommand) bool {
		switch {
		case each.Script != "":
			return h.matchesReading(shell.ReadScript(each.Script))
		case tool == dialect.ExecCommand && !shell.IsShell(each.Argv[0]): // an unknown shell that the model chose
			return true
		}
		return h.matchesReading(shell.ReadArgv(each.Argv))
	})
}

// ctrlC is the input for Ctrl-C.
const ctrlC = "\x03"

// matchesReading reports whether a parsed script may run a command that begins with the hook's argv.
func (h Hook) matchesReading(reading shell.Reading) bool {
	if reading.TooComplex != "" || len(reading.Commands) == 0 {
		return true
	}
	return slices.ContainsFunc(reading.Commands, func(c shell.Command) bool { return c.MayHideCommand() || beginsWith(c.Words, h.Argv) })
}

// beginsWith reports whether words may begin with argv. A word whose value is unknown matches anything. The first
// word also matches by its file name alone.
func beginsWith(words []shell.Word, argv []string) bool {
	for i, want := range argv {
		if i >= len(words) {
			return false
		}
		if !words[i].Known {
			return true // it may expand to any number of words
		}
		text := words[i].Text
		if i == 0 && !strings.Contains(want, "/") {
			text = path.Base(text)
		}
		if text != want {
			return false
		}
	}
	return true
}

// forEvent returns the hooks of an event, in the order of asking.
func (h *Hooks) forEvent(event string) []Hook {
	if h == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.All), func(hook Hook) bool { return hook.Event != event })
}
