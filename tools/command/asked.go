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

// CommandsOf returns the commands that a call of a command tool would run. It returns an error for an invalid call.
func CommandsOf(tool string, call tools.Call) ([]RequestedCommand, error) {
	t := &Tools{options: Options{limit: defaultLimit}, shell: "sh"}
	parse, known := map[string]func(tools.Call) ([]commandRequest, error){
		execSpec.Name: t.execRequests, shellCommandSpec.Name: t.shellLineRequests, shellFunction.Name: t.shellRequests, bashSpec.Name: t.shellLineRequests,
	}[tool]
	if !known {
		return nil, fmt.Errorf("%s runs no commands", tool)
	}
	requests, err := parse(call)
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

// ScriptOf returns SCRIPT of a command such as bash -c SCRIPT in a known shell. isScript is false for other commands.
func ScriptOf(argv []string) (script string, isScript bool) {
	script, hasForm := shellScript(argv)
	return script, hasForm && slices.Contains([]string{"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"}, argv[0])
}
