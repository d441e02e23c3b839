package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner"
)

func repairCommand() command {
	return command{
		name:  "repair",
		args:  "OWNER/REPO#N [JOB.yml] [FLAGS]",
		about: "fix failing checks on a pull request that a run opened",
		details: `
Reads the checks of the pull request. If some are red that are not red on its base,
the agent fixes them from their logs, under the rules of the run that opened it, and
one commit replaces the last one. If the base moved into conflict, both are merged
first. agent-ci run does the same on the events workflow_run and check_suite.
Outside of a checkout of the repository, it works in a clone.

Only a branch that ends in a commit of a run is changed, and only if the token's
account (GITHUB_TOKEN) pushed it. repair.attempts and repair.cost_usd limit all
attempts together; see docs/how-to/repair.md.`,
		example: `
OPENAI_API_KEY=… GITHUB_TOKEN=… agent-ci repair octo-org/widgets#12`,
		takes: operands{1, 2, "it takes a pull request, as OWNER/REPO#N, and a job file if there is one"}, define: repair, waits: true,
	}
}

// repair defines the flags of agent-ci repair. The function that it returns runs the job on the pull request.
func repair(f *flagSet) runFunc {
	var o runner.Options
	var failOn string
	var asJSON bool
	f.variables = true
	f.jobKeys = []string{"model", "set"}
	f.text(&o.Dir, "repo", "DIR", "checkout to work in (default: the current folder); elsewhere a clone is made")
	f.text(&o.Out, "out", "DIR", "run directory, as for agent-ci run")
	f.operatorFile(&o.Operator)
	f.session(&o.Replay)
	f.jobKey(&o.Set)
	f.text(&o.Model, "model", "NAME", "model to ask")
	f.text(&failOn, "fail-on", "LIST", "as for agent-ci run", failOnWords()...)
	f.events(&asJSON)
	f.quiet(&o.Quiet)
	return func(ctx context.Context, p process, rest []string) int {
		if o.Repair = rest[0]; o.Repair == "" {
			return f.wrong(p, "the pull request is empty; give it as OWNER/REPO#N, to the action as the input issue")
		}
		if len(rest) == 2 {
			o.JobFile = rest[1]
		}
		o.Set = append(o.Set, "task.from=event")
		return runJob(ctx, f, p, o, failOn, asJSON)
	}
}
