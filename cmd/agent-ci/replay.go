package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

func replayCommand() command {
	return command{
		name:  "replay",
		args:  "RUN_DIR | --last [FLAGS]",
		about: "run the recorded answers of a run again, offline, and tell what differs",
		details: `
The answers of the model come from the transcript; the tools work for real in a
fresh tree of the base commit, and each output is compared with the recorded
one; so are the end of the work, its checks and its tree. What commands print is
compared by exit status and text, but for times, ids, folders for temporary files
and addresses; what differs is shown as a diff. No model is asked and nothing is published. The commands of the run are
run again, confined as its job says. The pull request that would come of it
(--out) is the same each time, but for durations.

A run that this machine did not record, such as one of agent-ci fetch, gets no
more than the base commit (once origin has it), the AGENT_CI_ variables here and
the job file given with --job allow. Whatever goes beyond that ends the replay
before anything is run, and is named.

With --frozen nothing is run: it checks that the transcript makes up the
requests that were sent, that the objects of the change are those it tells of,
that the chain is whole, and that end and checks follow from the rest. It writes
the same pull request each time.

The exit status is 1 when something differs. When the run can't be replayed here,
it is that of the outcome which the message explains: 2 where a secret, a program
or the base commit is missing, 9 where commands can't be confined.`,
		example: `
agent-ci replay --last
agent-ci replay ../run
agent-ci replay ../run --frozen --out again`,
		takes: runOrLast, define: replay, waits: true,
	}
}

func replay(flags *flagSet) deed {
	var o runner.ReplayOptions
	var quiet, last bool
	flags.last(&last)
	flags.text(&o.Dir, "repo", "DIR", "checkout that has the base commit (default: where the run worked,\nor the current folder for a run that this machine did not record)")
	flags.text(&o.JobFile, "job", "JOB.yml", "the job of a run that this machine did not record: what it allows")
	flags.text(&o.Out, "out", "DIR", "run directory of the replay, new or empty (default: a temporary one)")
	flags.on(&o.Frozen, "frozen", "replay the tools too: run nothing")
	flags.on(&quiet, "quiet", "no progress on standard error")
	return func(ctx context.Context, p process, rest []string) int {
		dir, status := p.runOrLast("replay", flags, rest, last)
		if status != exitOK {
			return status
		}
		o.RunDir, o.Environ, o.Reserved, o.Version, o.ScriptEngine = dir, p.environ, reserved(), version, scriptEngine()
		if !quiet {
			o.Progress, o.Terminal = p.stderr, terminalOf(p)
		}
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
		if replayed.Outcome != "" {
			fmt.Fprintf(p.stdout, "ended as:     %s: %s\n", replayed.Outcome, progress.Printable(replayed.Message))
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

// notReplayed tells why a run can't be replayed and returns the exit status.
func notReplayed(p process, err error) int {
	stop, is := errors.AsType[*outcome.Stop](err)
	if !is {
		failed(p, "replay", err)
		return exitInvalid
	}
	fmt.Fprintf(p.stderr, "agent-ci replay: %s\n", outcome.Shortened(progress.Printable(stop.Message)))
	return stop.ExitCode()
}
