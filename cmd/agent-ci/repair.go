package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/record"
)

func repairCommand() command {
	return command{
		name:  "repair",
		args:  "OWNER/REPO#N [JOB.yml] [FLAGS]",
		about: "mend what is red on a pull request that a run made",
		details: `
Looks at the checks of the pull request and, where some are red that are not red on
its base, has the agent mend them: from their logs, under the same rules as the run
that made it, as a commit in the place of its last one. It does what agent-ci run
does on the events workflow_run and check_suite, for a schedule or by hand. Where
the base moved into conflict with the pull request, the two are brought together.
Outside of a checkout of that repository it works in a clone.
Only a branch that ends in a commit of a run is touched, pushed by the account of
the token (GITHUB_TOKEN). repair.attempts and repair.cost_usd bound all attempts
together; docs/repair.md says more.`,
		example: `
OPENAI_API_KEY=… GITHUB_TOKEN=… agent-ci repair octo-org/widgets#12`,
		takes: operands{1, 2, "it takes a pull request, as OWNER/REPO#N, and a job file if there is one"}, define: repair, waits: true,
	}
}

func repair(f *flagSet) deed {
	var o runner.Options
	var failOn string
	var asJSON bool
	f.variables = true
	f.jobKeys = []string{"model", "set"}
	f.text(&o.Dir, "repo", "DIR", "checkout to work in (default: the current folder); elsewhere a clone is made")
	f.text(&o.Out, "out", "DIR", "run directory, as for agent-ci run")
	f.text(&o.Operator, "operator-file", "FILE", "hooks of the operator, which no job changes; outside of the checkout")
	f.text(&o.Replay, "replay", "FILE", "take the model's answers from a scripted session instead of the API")
	f.list(&o.Set, "set", "KEY=VALUE", "set a job key; may be repeated")
	f.text(&o.Model, "model", "NAME", "model to ask")
	f.text(&failOn, "fail-on", "LIST", "as for agent-ci run", failOnWords()...)
	f.on(&asJSON, "json", "print each event of the transcript as a line of JSON on standard output")
	f.on(&o.Quiet, "quiet", "no progress on standard error")
	return func(ctx context.Context, p process, rest []string) int {
		if o.Repair = rest[0]; o.Repair == "" {
			return f.wrong(p, "the pull request is empty; give it as OWNER/REPO#N, to the action as the input issue")
		}
		if len(rest) == 2 {
			o.JobFile = rest[1]
		}
		failing, err := readFailOn(failOn)
		if err != nil {
			return f.wrong(p, "%v", err)
		}
		return failing.status(attend(ctx, p, asJSON, &o.Surroundings, func(ctx context.Context) record.Result {
			o.Set = append(append(setLines(p), o.Set...), "task.from=event")
			return runner.Run(ctx, o)
		}))
	}
}
