package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner"
)

func publishCommand() command {
	return command{
		name:  "publish",
		args:  "RUN_DIR [FLAGS]",
		about: "publish the change of a run that was made with --publish none, as a pull request",
		details: `
The second half of a run alone, for a job that has the token and no agent. The
run directory is checked as untrusted data: its chain, its base commit, the
objects of the change, protected paths and sizes, by the rules of the base
commit, the job file and the environment here. No command of the repository
runs, and the work tree is not touched.`,
		example: `
agent-ci run --issue octo-org/widgets#7 --publish none --out ../run   # without the token that may write
GITHUB_TOKEN=… agent-ci publish ../run                               # in another job, on a fresh checkout`,
		takes: anyOperands, define: publish, waits: true,
	}
}

type publishArguments struct {
	flags                     *flagSet
	repo, job, bundle, failOn string
	set                       []string
	quiet                     bool
}

func publish(f *flagSet) deed {
	a := &publishArguments{flags: f}
	f.variables = true
	f.jobKeys = map[string]string{"set": "any"}
	f.text(&a.repo, "repo", "DIR", "checkout that holds the base commit (default: the current folder)")
	f.text(&a.job, "job", "JOB.yml", "the job of the run: its policy, limits and pull_request hold here too")
	f.text(&a.bundle, "run-directory", "DIR", "the run directory, where it is not the argument")
	f.text(&a.failOn, "fail-on", "LIST", "as for agent-ci run")
	f.choices["fail-on"] = failOnWords()
	f.list(&a.set, "set", "KEY=VALUE", "set a job key; may be repeated")
	f.on(&a.quiet, "quiet", "no progress on standard error")
	return a.publish
}

func (a *publishArguments) publish(ctx context.Context, p process, rest []string) int {
	if len(rest) == 0 && a.bundle != "" {
		rest = []string{a.bundle}
	}
	if len(rest) != 1 {
		return a.flags.wrong(p, "%s", oneRunDirectory.problem)
	}
	failing, err := readFailOn(a.failOn)
	if err != nil {
		return a.flags.wrong(p, "%v", err)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	result := runner.Publish(ctx, runner.PublishOptions{
		RunDir: rest[0], Dir: a.repo, JobFile: a.job, Set: append(setLines(p), a.set...), Surroundings: surroundings(p, a.quiet),
	})
	showResult(p.stdout, p.stderr, result)
	return failing.status(result)
}
