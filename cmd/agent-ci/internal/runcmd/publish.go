package runcmd

import (
	"context"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner"
)

func PublishCommand() cli.Command {
	return cli.Command{
		Name:  "publish",
		Args:  "RUN_DIR [FLAGS]",
		About: "publish the change of a run with --publish none as a pull request",
		Details: `
The second half of a run, for a job that has the token and no agent. The run
directory is not trusted: its chain, base commit, objects, protected paths and sizes
are checked by the rules of the base commit, the job file and the environment here.
Of the repository only the base commit's pre_publish hooks run, in a sandbox. The
work tree is not changed. If the operator had pre_publish hooks in the run, give the
operator's file.`,
		Example: `
agent-ci run --issue octo-org/widgets#7 --publish none --out ../run   # without the token that may write
GITHUB_TOKEN=… agent-ci publish ../run                               # in another job, on a fresh checkout`,
		Takes: cli.Operands{Least: 1, Most: 1, Problem: "it takes one run directory, or the id of a run"}, Define: definePublish, MostlyWaits: true,
	}
}

// definePublish defines the flags of agent-ci publish. The function that it returns publishes the run.
func definePublish(flags *cli.FlagSet) cli.RunFunc {
	var o runner.PublishOptions
	var failOn string
	flags.FromVariables = true
	flags.JobKeys = []string{"set"}
	flags.Text(&o.Dir, "repo", "DIR", "checkout that holds the base commit (default: the current folder)")
	flags.Text(&o.JobFile, "job", "JOB.yml", "the job of the run: its policy, limits and pull_request hold here too")
	flags.OperatorFile(&o.Operator)
	flags.Text(&failOn, "fail-on", "LIST", "as for agent-ci run", failOnChoices()...)
	flags.Assignments(&o.Set)
	flags.Quiet(&o.Quiet)
	return func(ctx context.Context, p cli.Process, runs []string) error {
		failing, err := parseFailOn(failOn)
		if err != nil {
			return cli.Misuse("%w", err)
		}
		ctx, stop := cli.UntilSignal(ctx)
		defer stop()
		o.RunDir = runDirectory(p, runs[0])
		o.Set, o.Surroundings = append(VariableAssignments(p), o.Set...), newSurroundings(p, o.Quiet)
		result := runner.Publish(ctx, o)
		showResult(p, result)
		return cli.Exit(failing.exitStatus(result), nil)
	}
}
