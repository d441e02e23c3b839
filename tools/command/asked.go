package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/tools"
)

// RequestedCommand is a command in a call: a script for the default shell, or a program with arguments.
type RequestedCommand struct {
	Script string
	Argv   []string
}

// CommandsOf returns the commands that a call of a command tool would run. The error says why a call cannot be read.
func CommandsOf(tool string, call tools.Call) ([]RequestedCommand, error) {
	t := &Tools{options: Options{limit: defaultLimit}, shell: "sh"}
	read, known := map[string]func(tools.Call) ([]commandRequest, error){
		execSpec.Name: t.execRequests, shellCommandSpec.Name: t.shellLineRequests, shellFunction.Name: t.shellRequests, bashSpec.Name: t.shellLineRequests,
	}[tool]
	if !known {
		return nil, fmt.Errorf("%s runs no commands", tool)
	}
	requests, err := read(call)
	if err != nil {
		return nil, err
	}
	all := make([]RequestedCommand, len(requests))
	for i, request := range requests {
		if len(request.argv) == 0 {
			return nil, errors.New("it names no program")
		}
		all[i] = RequestedCommand{Script: request.script}
		if request.script == "" {
			all[i].Argv = request.argv
		}
	}
	return all, nil
}

// ScriptOf returns the script of a command that only runs a script in a known shell, such as bash -c.
func ScriptOf(argv []string) (string, bool) {
	script, ok := shellScript(argv)
	return script, ok && slices.Contains([]string{"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"}, argv[0])
}
