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
		run: action, waits: true,
	}
}

func action(ctx context.Context, p process, args []string) int {
	flags := newFlags(actionCommand())
	rest, status, done := flags.parse(p, args)
	if done {
		return status
	}
	if len(rest) > 0 {
		return flags.wrong(p, "it takes no arguments")
	}
	directory := p.variable(directoryVariable)
	switch name := p.variable(commandVariable); name {
	case "", "run":
		if directory != "" {
			return run(ctx, p, []string{"--out", directory})
		}
		return run(ctx, p, nil)
	case "publish":
		return publish(ctx, p, nil)
	default:
		return flags.wrong(p, "the input command is run or publish, not %s", name)
	}
}
