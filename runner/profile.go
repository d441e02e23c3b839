package runner

import (
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// profile says with which tools a family of models was trained to run commands
// and to change files. Tools that a model is not told of answer all the same.
type profile struct {
	models []string   // words that the names of the models hold; none for all
	runs   []string   // tools that run commands
	shell  tools.Form // of shell, where that is one of them
	patch  tools.Form // of apply_patch
}

var (
	sessions    = []string{"exec_command", "write_stdin"}
	programs    = []string{"shell"}
	commandLine = []string{"shell_command"}
)

// profiles are tried in their order. They follow the reference implementation's
// list of models: what is not listed there may be any model, and a line for the
// shell is what most know.
var profiles = []profile{
	{models: []string{"codex-mini"}, runs: programs, shell: tools.LocalShellAction, patch: tools.Function},
	{models: []string{"gpt-5", "codex"}, runs: sessions, patch: tools.Freeform},
	{models: []string{"gpt-4", "gpt-3.5", "gpt-oss", "o1", "o3", "o4"}, runs: programs, patch: tools.Function},
	{runs: commandLine, patch: tools.Function},
}

// profileOf is the profile of the model of that name, in the form that the job
// asks for: auto, freeform, function or builtin.
func profileOf(model, form string) profile {
	var p profile
	for _, p = range profiles {
		if p.fits(strings.ToLower(model)) {
			break
		}
	}
	switch form {
	case "freeform":
		p.patch = tools.Freeform
	case "function":
		p.patch = tools.Function
	case "builtin":
		p.patch, p.runs = tools.Operation, programs
		if p.shell == tools.Function {
			p.shell = tools.ShellAction
		}
	}
	return p
}

func (p profile) fits(model string) bool {
	for _, word := range p.models {
		if holdsWord(model, word) {
			return true
		}
	}
	return len(p.models) == 0
}

// holdsWord says whether a word of name begins with word, whatever provider or
// deployment is named around it.
func holdsWord(name, word string) bool {
	for rest := name; ; {
		before, after, found := strings.Cut(rest, word)
		if !found {
			return false
		}
		if before == "" && len(rest) == len(name) || before != "" && strings.ContainsRune("/-_.: ", rune(before[len(before)-1])) {
			return true
		}
		rest = after
	}
}

// offered are the tools that the model is told of: those that every model gets,
// those of its profile, and those that the job names.
func (p profile) offered(named []string) []string {
	all := append([]string{"update_plan", "read_file", "list_dir", "grep_files", "view_image"}, p.runs...)
	return append(append(all, patchTool), named...)
}
