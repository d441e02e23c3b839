package hooks

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
)

// concerns says whether a hook is asked of a call of a tool that goes by these names.
func (h Hook) concerns(tool string, call tools.Call, names ...string) bool {
	if len(h.Tools) > 0 && !slices.ContainsFunc(names, h.named) {
		return false
	}
	return len(h.Argv) == 0 || h.runs(tool, call)
}

// named says whether one of the patterns of a hook has that name. A pattern may hold several,
// with | between them, and .* for *, as those of Claude Code do.
func (h Hook) named(name string) bool {
	return slices.ContainsFunc(h.Tools, func(patterns string) bool {
		return slices.ContainsFunc(strings.Split(patterns, "|"), func(pattern string) bool {
			return like(strings.ReplaceAll(strings.TrimSpace(pattern), ".*", "*"), name)
		})
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

// names are those that a tool goes by in a form.
func names(compat, tool string, as shaped) []string {
	if compat == "" {
		return []string{tool}
	}
	all := []string{tool, as.Tool}
	if tool == applyPatch {
		all = append(all, "Edit", "Write", "MultiEdit")
	}
	return all
}

// runs says whether a command of a call begins with the words of the hook. What can't be told
// counts as if it did.
func (h Hook) runs(tool string, call tools.Call) bool {
	scripts, argv := commands(tool, call)
	if len(argv) > 0 {
		return h.among(shell.ReadArgv(argv))
	}
	return slices.ContainsFunc(scripts, func(script string) bool { return h.among(shell.ReadScript(script)) })
}

func (h Hook) among(reading shell.Reading) bool {
	if reading.Excess != "" || len(reading.Commands) == 0 {
		return true
	}
	return slices.ContainsFunc(reading.Commands, func(c shell.Command) bool { return begins(c.Words, h.Argv) })
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
