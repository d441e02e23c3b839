package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner"
)

func resumeCommand() command {
	return command{
		name:  "resume",
		args:  "RUN_DIR [FLAGS]",
		about: "go on with a run that was killed",
		details: `
The run goes on after the last event of its transcript, under the job that it
was started with: tool calls that had ended are not run again, what they used of
the limits counts, a patch that was half applied is taken back, and the model is
told of a command that was broken off. With another checkout of the same base
commit (--repo) the patches of the run are applied again there.`,
		example: `
agent-ci run --issue octo-org/widgets#7 --out ../run    # and the machine goes down
agent-ci resume ../run`,
		run: resume,
	}
}

func resume(ctx context.Context, p process, args []string) int {
	var repo string
	var asJSON, quiet bool
	flags := newFlags(resumeCommand())
	flags.variables = true
	flags.text(&repo, "repo", "DIR", "checkout to go on in (default: where the run worked)")
	flags.on(&asJSON, "json", "print each event of the transcript as a line of JSON on standard output")
	flags.on(&quiet, "quiet", "no progress on standard error")
	rest, status, done := flags.parse(p, args)
	if done {
		return status
	}
	if len(rest) != 1 {
		return flags.wrong(p, "it takes one run directory")
	}
	options := runner.ResumeOptions{
		RunDir: rest[0], Dir: repo, Quiet: quiet, Environ: p.environ, Reserved: reserved(), Version: version, Progress: p.stderr,
	}
	show := p.stdout
	if asJSON {
		options.Events, show = p.stdout, p.stderr
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	result := runner.Resume(ctx, options)
	showResult(show, p.stderr, result)
	return result.ExitCode
}
