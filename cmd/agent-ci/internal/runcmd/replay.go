package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

func ReplayCommand() cli.Command {
	return cli.Command{
		Name:  "replay",
		Args:  "RUN_DIR | --last [FLAGS]",
		About: "repeat a recorded run offline and show what differs",
		Details: `
The model's answers come from the transcript. The tools really run, confined as the
job says, in a fresh tree of the base commit. Each output, the end of the work, its
checks and its tree are compared with the record, and differences are shown.
Times, ids, temporary folders and addresses in outputs are ignored, and so is the order
of a search's files. No model is asked, and nothing is published. --out keeps the replay
with its pull request.

If this machine did not record the run, such as one of GitHub Actions, it may do what the
base commit (once origin has it), the AGENT_CI_ variables here and the job in --job
allow. If its own job goes beyond them, nothing runs, and the key is named.

With --frozen nothing runs. It checks that the transcript's chain is whole, that it
gives the requests that were sent, that the objects of the change match, and that end
and checks follow from the rest.

The exit status is 1 if something differs. If the run cannot be replayed here, it is
2 (a secret, a program or the base commit is missing) or 9 (no confinement).`,
		Example: `
agent-ci replay --last
agent-ci replay ../run
agent-ci replay ../run --frozen --out again`,
		Takes: runOrLast, Define: defineReplay, MostlyWaits: true,
	}
}

// defineReplay defines the flags of agent-ci replay. The function that it returns prints the differences.
func defineReplay(flags *cli.FlagSet) cli.RunFunc {
	var o runner.ReplayOptions
	var last bool
	flags.Last(&last)
	flags.Text(&o.Dir, "repo", "DIR", "checkout that has the base commit (default: where the run worked,\nor the current folder for a run that this machine did not record)")
	flags.Text(&o.JobFile, "job", "JOB.yml", "the job of a run that this machine did not record: what it allows")
	flags.Text(&o.Out, "out", "DIR", "run directory of the replay, new or empty (default: a temporary one)")
	flags.Boolean(&o.Frozen, "frozen", "run nothing: take the outputs of tools from the record as well")
	flags.Quiet(&o.Quiet)
	return func(ctx context.Context, p cli.Process, runs []string) error {
		dir, err := runDirectoryOrLast(p, runs, last)
		if err != nil {
			return err
		}
		o.RunDir, o.Surroundings = dir, newSurroundings(p, o.Quiet)
		o.Step = nil // a replay's result is not the outcome of the workflow step
		ctx, stop := cli.UntilSignal(ctx)
		defer stop()
		replayed, err := runner.Replay(ctx, o)
		if err != nil {
			return replayFailure(err)
		}
		compared := "calls"
		if o.Frozen {
			compared = "requests"
		}
		p.Print("tree:         %s", replayed.Tree)
		p.Print("compared:     %d %s, %d differences", replayed.Calls, compared, len(replayed.Differences))
		if end := replayed.Stop; end != nil {
			p.Print("ended as:     %s: %s", end.Outcome, end.Message)
		}
		for _, d := range replayed.Differences {
			fmt.Fprintf(p.Stdout, "\n%s\n%s", markdown.Show(d.Subject), markdown.Show(d.Diff()))
		}
		if len(replayed.Differences) > 0 {
			return cli.Exit(cli.ExitFailed, nil)
		}
		return nil
	}
}

// replayFailure returns the error of a run that cannot be replayed, with its exit status.
func replayFailure(err error) error {
	if stop, is := errors.AsType[*outcome.Stop](err); is {
		return cli.Exit(stop.ExitCode(), errors.New(stop.Message))
	}
	return cli.Exit(cli.ExitInvalid, err)
}
