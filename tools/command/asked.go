package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/tools"
)

// RequestedCommand is a requested command: a script for a shell of our choice, or a program with arguments.
type RequestedCommand struct {
	Script string
	Argv   []string
	Patch  string // that is all there is to the command, which is then not run
	Dir    string // in which paths of Patch start, from the working directory or absolute; empty for that directory
}

// CommandsOf returns the commands of a call, parsed like for their start. The error explains an unreadable
// call.
func CommandsOf(tool string, call tools.Call) ([]RequestedCommand, error) {
	t := &Tools{options: Options{limit: defaultLimit}, shell: "sh"}
	read, known := map[string]func(tools.Call) ([]commandRequest, error){
		execSpec.Name: t.execLaunches, shellCommandSpec.Name: t.shellCommandLaunches, shellFunction.Name: t.shellLaunches, bashSpec.Name: t.bashLaunches,
	}[tool]
	if !known {
		return nil, fmt.Errorf("%s runs no commands", tool)
	}
	launches, err := read(call)
	if err != nil {
		return nil, err
	}
	all := make([]RequestedCommand, len(launches))
	for i, l := range launches {
		if len(l.argv) == 0 {
			return nil, errors.New("it names no program")
		}
		p, _ := patchOf(l.argv)
		all[i] = RequestedCommand{Script: l.script, Argv: l.argv, Patch: p.text, Dir: p.from(l.workdir)}
		if l.script != "" {
			all[i].Argv = nil
		}
	}
	return all, nil
}

// ScriptOf returns the script, if a command only runs one in a known shell.
func ScriptOf(argv []string) (string, bool) {
	script, ok := shellScript(argv)
	return script, ok && slices.Contains([]string{"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"}, argv[0])
}
