package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner"
)

func publishCommand() command {
	return command{
		name:  "publish",
		args:  "RUN_DIR [FLAGS]",
		about: "publish the change of a run with --publish none as a pull request",
		details: `
The second half of a run, for a job that has the token and no agent. The run
directory is not trusted: its chain, base commit, objects, protected paths and sizes
are checked by the rules of the base commit, the job file and the environment here.
Of the repository only the base commit's pre_publish hooks run, in a sandbox. The
work tree is not changed. If the operator had pre_publish hooks in the run, give the
operator's file.`,
		example: `
agent-ci run --issue octo-org/widgets#7 --publish none --out ../run   # without the token that may write
GITHUB_TOKEN=… agent-ci publish ../run                               # in another job, on a fresh checkout`,
		takes: operands{1, 1, "it takes one run directory, or the id of a run"}, define: publishRun, waits: true,
	}
}

// publishRun defines the flags of agent-ci publish. The function that it returns publishes the run.
func publishRun(flags *flagSet) runFunc {
	var o runner.PublishOptions
	var failOn string
	flags.variables = true
	flags.jobKeys = []string{"set"}
	flags.text(&o.Dir, "repo", "DIR", "checkout that holds the base commit (default: the current folder)")
	flags.text(&o.JobFile, "job", "JOB.yml", "the job of the run: its policy, limits and pull_request hold here too")
	flags.operatorFile(&o.Operator)
	flags.text(&failOn, "fail-on", "LIST", "as for agent-ci run", failOnWords()...)
	flags.jobKey(&o.Set)
	flags.quiet(&o.Quiet)
	return func(ctx context.Context, p process, rest []string) int {
		failing, err := readFailOn(failOn)
		if err != nil {
			return flags.wrong(p, "%v", err)
		}
		ctx, stop := untilSignal(ctx)
		defer stop()
		o.RunDir = p.runDirectory(rest[0])
		o.Set, o.Surroundings = append(setLines(p), o.Set...), surroundings(p, o.Quiet)
		result := runner.Publish(ctx, o)
		showResult(p.stdout, p.stderr, result)
		return failing.status(result)
	}
}
