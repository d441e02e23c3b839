package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/record"
)

func resumeCommand() command {
	return command{
		name:  "resume",
		args:  "RUN_DIR | --last [FLAGS]",
		about: "go on with a run that was killed or stopped",
		details: `
A run that was killed, cancelled, or ended by the model's API, by GitHub or by a
limit goes on after the last event of its transcript, under the job that it was
started with: tool calls that had ended are not run again, what they used of the
limits counts, a patch that was half applied is taken back, and the model is told
of a command that was broken off. A checkout of the same base commit, also on
another machine (--repo), gets the work so far: the change that the run kept at
its end or, when it was killed, its patches.

A run with a scripted session needs it again (--replay) and goes on with the turn
after the last one that it was given.

A run that this machine did not record resumes under the job given with --job,
the base commit's settings and the AGENT_CI_ variables here. Where its own job
goes beyond them, nothing is run, and the key is named.

Of the settings only limits may be other ones (--set limits.turns=400): the one
that ended a run must be raised.`,
		example: `
agent-ci run --issue octo-org/widgets#7 --out ../run    # and the machine goes down
agent-ci resume ../run
agent-ci resume --last
agent-ci resume ../run --set limits.cost_usd=10`,
		takes: runOrLast, define: resume, waits: true,
	}
}

func resume(flags *flagSet) deed {
	var o runner.ResumeOptions
	var asJSON, last bool
	flags.last(&last)
	flags.variables = true
	flags.text(&o.Dir, "repo", "DIR", "checkout to go on in (default: where the run worked,\nor the current folder for a run that this machine did not record)")
	flags.text(&o.JobFile, "job", "JOB.yml", "the job of a run that this machine did not record: what it allows")
	flags.text(&o.Replay, "replay", "FILE", "the scripted session, of a run that had one")
	flags.text(&o.Operator, "operator-file", "FILE", "hooks of the operator, which no job changes; outside of the checkout")
	flags.list(&o.Set, "set", "LIMIT=VALUE", "set a limit anew (limits.…); may be repeated")
	flags.on(&asJSON, "json", "print each event of the transcript as a line of JSON on standard output")
	flags.on(&o.Quiet, "quiet", "no progress on standard error")
	return func(ctx context.Context, p process, rest []string) int {
		dir, status := p.runOrLast("resume", flags, rest, last)
		if status != exitOK {
			return status
		}
		o.RunDir = dir
		return attend(ctx, p, asJSON, &o.Surroundings, func(ctx context.Context) record.Result { return runner.Resume(ctx, o) }).ExitCode
	}
}
