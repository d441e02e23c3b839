package runcmd

import (
	"context"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner"
)

func RepairCommand() cli.Command {
	return cli.Command{
		Name:  "repair",
		Args:  "OWNER/REPO#N [JOB.yml] [FLAGS]",
		About: "fix failing checks on a pull request that a run opened",
		Details: `
Reads the checks of the pull request. If some are red that are not red on its base,
the agent fixes them from their logs, under the rules of the run that opened it, and
one commit replaces the last one. If the base moved into conflict, both are merged
first. agent-ci run does the same on the events workflow_run and check_suite.
Outside of a checkout of the repository, it works in a clone.

Only a branch that ends in a commit of a run is changed, and only if the token's
account (GITHUB_TOKEN) pushed it. repair.attempts and repair.cost_usd limit all
attempts together; see docs/how-to/repair.md.`,
		Example: `
OPENAI_API_KEY=… GITHUB_TOKEN=… agent-ci repair octo-org/widgets#12`,
		Takes: cli.Operands{Least: 1, Most: 2, Problem: "it takes a pull request, as OWNER/REPO#N, and a job file if there is one"}, Define: defineRepair, MostlyWaits: true,
	}
}

// defineRepair defines the flags of agent-ci repair. The function that it returns runs the job on the pull request.
func defineRepair(f *cli.FlagSet) cli.RunFunc {
	var o runner.Options
	var failOn string
	var asJSON bool
	f.FromVariables = true
	f.JobKeys = []string{"model", "set"}
	f.Text(&o.Dir, "repo", "DIR", "checkout to work in (default: the current folder); elsewhere a clone is made")
	f.Text(&o.Out, "out", "DIR", "run directory, as for agent-ci run")
	f.OperatorFile(&o.Operator)
	f.Replay(&o.Replay)
	f.Assignments(&o.Set)
	f.Text(&o.Model, "model", "NAME", "model to ask")
	f.Text(&failOn, "fail-on", "LIST", "as for agent-ci run", failOnChoices()...)
	f.JSONEvents(&asJSON)
	f.Quiet(&o.Quiet)
	return func(ctx context.Context, p cli.Process, operands []string) error {
		if o.Repair = operands[0]; o.Repair == "" {
			return cli.Misuse("the pull request is empty; give it as OWNER/REPO#N, to the action as the input issue")
		}
		if len(operands) == 2 {
			o.JobFile = operands[1]
		}
		o.Set = append(o.Set, "task.from=event")
		return runJob(ctx, p, o, failOn, asJSON)
	}
}
