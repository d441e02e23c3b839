package main

import "context"

// commandVariable and directoryVariable hold inputs of the action that are no
// flags of both commands.
const (
	commandVariable   = flagPrefix + "COMMAND"
	directoryVariable = flagPrefix + "RUN_DIRECTORY"
)

func actionCommand() command {
	return command{
		name:  "action",
		about: "what the GitHub Action starts: run or publish, told by the environment",
		details: `
AGENT_CI_COMMAND is run (the default) or publish, AGENT_CI_RUN_DIRECTORY the run
directory; everything else is as for these commands. docs/action.md has the
inputs of the action.`,
		example: `
AGENT_CI_TASK_PROMPT="Fix the failing test" agent-ci action`,
		define: action, waits: true,
	}
}

func action(flags *flagSet) deed {
	return func(ctx context.Context, p process, _ []string) int {
		var args []string
		if directory := p.variable(directoryVariable); directory != "" {
			args = []string{"--out", directory}
		}
		switch name := p.variable(commandVariable); name {
		case "", "run":
			return runCommand().run(ctx, p, args)
		case "publish":
			return publishCommand().run(ctx, p, nil)
		default:
			return flags.wrong(p, "the input command is run or publish, not %s", name)
		}
	}
}
