package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

func replayCommand() command {
	return command{
		name:  "replay",
		args:  "RUN_DIR | --last [FLAGS]",
		about: "repeat a recorded run offline and show what differs",
		details: `
The model's answers come from the transcript. The tools really run, confined as the
job says, in a fresh tree of the base commit. Each output, the end of the work, its
checks and its tree are compared with the record, and differences are shown.
Times, ids, temporary folders and addresses in outputs are ignored. No model is
asked, and nothing is published. --out keeps the replay with its pull request.

If this machine did not record the run, such as one of GitHub Actions, it may do what the
base commit (once origin has it), the AGENT_CI_ variables here and the job in --job
allow. If its own job goes beyond them, nothing runs, and the key is named.

With --frozen nothing runs. It checks that the transcript's chain is whole, that it
gives the requests that were sent, that the objects of the change match, and that end
and checks follow from the rest.

The exit status is 1 if something differs. If the run cannot be replayed here, it is
2 (a secret, a program or the base commit is missing) or 9 (no confinement).`,
		example: `
agent-ci replay --last
agent-ci replay ../run
agent-ci replay ../run --frozen --out again`,
		takes: runOrLast, define: replay, waits: true,
	}
}

// replay defines the flags of agent-ci replay. The function that it returns replays the run and prints
// the differences.
func replay(flags *flagSet) runFunc {
	var o runner.ReplayOptions
	var last bool
	flags.last(&last)
	flags.text(&o.Dir, "repo", "DIR", "checkout that has the base commit (default: where the run worked,\nor the current folder for a run that this machine did not record)")
	flags.text(&o.JobFile, "job", "JOB.yml", "the job of a run that this machine did not record: what it allows")
	flags.text(&o.Out, "out", "DIR", "run directory of the replay, new or empty (default: a temporary one)")
	flags.boolean(&o.Frozen, "frozen", "run nothing: take the outputs of tools from the record as well")
	flags.quiet(&o.Quiet)
	return func(ctx context.Context, p process, rest []string) int {
		dir, status := p.runDirectoryOrLast("replay", flags, rest, last)
		if status != exitOK {
			return status
		}
		o.RunDir, o.Surroundings = dir, surroundings(p, o.Quiet)
		o.Step = nil // a replay's result is not the outcome of the workflow step
		ctx, stop := untilSignal(ctx)
		defer stop()
		replayed, err := runner.Replay(ctx, o)
		if err != nil {
			return notReplayed(p, err)
		}
		compared := "calls"
		if o.Frozen {
			compared = "requests"
		}
		fmt.Fprintf(p.stdout, "tree:         %s\ncompared:     %d %s, %d differences\n", replayed.Tree, replayed.Calls, compared, len(replayed.Differences))
		if end := replayed.Stop; end != nil {
			fmt.Fprintf(p.stdout, "ended as:     %s: %s\n", end.Outcome, progress.Printable(end.Message))
		}
		for _, d := range replayed.Differences {
			fmt.Fprintf(p.stdout, "\n%s\n%s", markdown.Show(d.What), markdown.Show(d.Diff()))
		}
		if len(replayed.Differences) > 0 {
			return exitFailed
		}
		return exitOK
	}
}

// notReplayed prints why a run cannot be replayed, and returns the exit status.
func notReplayed(p process, err error) int {
	stop, is := errors.AsType[*outcome.Stop](err)
	if !is {
		failed(p, "replay", err)
		return exitInvalid
	}
	fmt.Fprintf(p.stderr, "agent-ci replay: %s\n", outcome.ShortenNames(progress.Printable(stop.Message)))
	return stop.ExitCode()
}
