package runcmd

import (
	"context"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/record"
)

func ResumeCommand() cli.Command {
	return cli.Command{
		Name:  "resume",
		Args:  "RUN_DIR | --last [FLAGS]",
		About: "resume a run that was killed or stopped",
		Details: `
Resumes a run that was killed or cancelled, or that the model's API, GitHub or a
limit ended. A run that stopped because of its input, such as a checkout without
write access, resumes if its agent had begun; correct the input first.
It keeps the run's job and starts after the last recorded event. Tool
calls that had ended do not run again, and what they used of the limits counts. A
half-applied patch is undone. The model learns of a command that was interrupted.

In another checkout of the same base commit (--repo), also on another machine, the
run gets the change that it had kept, or the recorded patches if it was killed.

A scripted run needs its session again (--replay) and continues with the next turn.

A record of another machine is not trusted. Pass the job with --job. If the record
asks for more than that job, the base commit's settings and your AGENT_CI_ variables
allow, nothing starts, and the message names the key.

You can change limits alone (--set limits.turns=400), and must raise the one that
ended the run.`,
		Example: `
agent-ci run --issue octo-org/widgets#7 --out ../run    # then the machine goes down
agent-ci resume ../run
agent-ci resume --last
agent-ci resume ../run --set limits.cost_usd=10`,
		Takes: runOrLast, Define: defineResume, MostlyWaits: true,
	}
}

// defineResume defines the flags of agent-ci resume. The function that it returns resumes the run.
func defineResume(flags *cli.FlagSet) cli.RunFunc {
	var o runner.ResumeOptions
	var asJSON, last bool
	flags.Last(&last)
	flags.FromVariables = true
	flags.Text(&o.Dir, "repo", "DIR", "checkout to continue in (default: where the run worked,\nor the current folder for a run that this machine did not record)")
	flags.Text(&o.JobFile, "job", "JOB.yml", "the job of a run that this machine did not record: what it allows")
	flags.Text(&o.Replay, "replay", "FILE", "the scripted session, of a run that had one")
	flags.OperatorFile(&o.Operator)
	flags.List(&o.Set, "set", "LIMIT=VALUE", "change a limit (limits.…); may be repeated")
	flags.JSONEvents(&asJSON)
	flags.Quiet(&o.Quiet)
	return func(ctx context.Context, p cli.Process, runs []string) (err error) {
		if o.RunDir, err = runDirectoryOrLast(p, runs, last); err != nil {
			return err
		}
		result := runUntilSignal(ctx, p, asJSON, &o.Surroundings, func(ctx context.Context) record.Result { return runner.Resume(ctx, o) })
		return cli.Exit(result.ExitCode, nil)
	}
}
