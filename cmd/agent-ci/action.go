package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// These hold inputs of the action that are no flags of all its commands.
const (
	commandVariable   = flagPrefix + "COMMAND"
	directoryVariable = flagPrefix + "RUN_DIRECTORY"
	jobVariable       = flagPrefix + "JOB"
	issueVariable     = flagPrefix + "TASK_ISSUE"
)

func actionCommand() command {
	return command{
		name:  "action",
		about: "what the GitHub Action starts: run, repair or publish, told by the environment",
		details: `
AGENT_CI_COMMAND is run (the default), repair or publish, AGENT_CI_RUN_DIRECTORY
the run directory; for repair, AGENT_CI_TASK_ISSUE is the pull request. Everything
else is as for these commands. docs/action.md has the inputs of the action.`,
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
		case "repair":
			return repairCommand().run(ctx, p.withoutIssue(), append(args, p.toRepair()...))
		case "publish":
			return publishCommand().run(ctx, p, nil)
		default:
			return flags.wrong(p, "the input command is run, repair or publish, not %s", name)
		}
	}
}

// toRepair are the operands of a repair: the pull request, whose number alone means one of
// the workflow's own repository, and the job.
func (p process) toRepair() []string {
	pull := p.variable(issueVariable)
	if _, err := strconv.Atoi(strings.TrimPrefix(pull, "#")); err == nil {
		pull = p.variable("GITHUB_REPOSITORY") + "#" + strings.TrimPrefix(pull, "#")
	}
	operands := []string{"--", pull}
	if job := p.variable(jobVariable); job != "" {
		operands = append(operands, job)
	}
	return operands
}

// withoutIssue is p without the job key task.issue: a pull request to repair is no task.
func (p process) withoutIssue() process {
	p.environ = slices.DeleteFunc(slices.Clone(p.environ), func(s string) bool { return strings.HasPrefix(s, issueVariable+"=") })
	return p
}
