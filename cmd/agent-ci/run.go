package main

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner"
)

func runCommand() command {
	return command{
		name:  "run",
		args:  "[JOB.yml] [--issue OWNER/REPO#N | --prompt TEXT | --prompt-file FILE] [FLAGS]",
		about: "run a job: let the agent work, verify the change, publish it",
		details: `
The task comes from the job file, or from --issue, --prompt or --prompt-file.
A flag wins over --set, that over the variables named after job keys
(AGENT_CI_LIMITS_TURNS for limits.turns), those over the job file, that over
.github/agent-ci.yml of the base commit, and that over what is built in. Flags
that are no job key have variables too: AGENT_CI_REPO for --repo.

The model's key is read from OPENAI_API_KEY, GitHub's token from GITHUB_TOKEN.
The outcome decides the exit status: 0 for changed, no_changes and skipped;
docs/outcomes.md lists the others.

Commands run confined, as far as the kernel gives it, without the keys and
tokens in their environment; docs/security.md says what holds. Where nothing
confines them the run ends as sandbox_unavailable, before the model is asked;
--set policy.sandbox=danger-full-access runs them UNCONFINED, with all rights of
the user who starts agent-ci. Use a machine or container of their own then.`,
		example: `
OPENAI_API_KEY=… GITHUB_TOKEN=… agent-ci run --issue octo-org/widgets#7
agent-ci run jobs/lint.yml --set limits.turns=50
agent-ci run --prompt "Fix the failing test" --publish none`,
		takes: anyOperands, define: run, waits: true,
	}
}

type runArguments struct {
	flags                      *flagSet
	issue, prompt, promptFile  string
	repo, out, publish, replay string
	model                      string
	set                        []string
	job, failOn                string
	json, quiet                bool
}

func run(f *flagSet) deed {
	a := &runArguments{flags: f}
	f.variables = true
	f.jobKeys = map[string]string{
		"issue": "task.issue", "prompt": "task.prompt", "prompt-file": "task.prompt", "model": "model.name", "set": "any",
	}
	f.text(&a.issue, "issue", "REF", "take the task from an issue: OWNER/REPO#N, or #N in the repository's checkout")
	f.text(&a.prompt, "prompt", "TEXT", "take the task from the command line")
	f.text(&a.promptFile, "prompt-file", "FILE", "take the task from a file, - for standard input")
	f.text(&a.repo, "repo", "DIR", "checkout to work in (default: the current folder)")
	f.text(&a.out, "out", "DIR", "run directory, new or empty (default: a new one below $RUNNER_TEMP,\nelse below the user's state folder)")
	f.text(&a.publish, "publish", "MODE", "github: push to GitHub and open a pull request;\nlocal: commit on the task's branch, push if the origin is on this machine;\nnone: leave the change in the checkout, uncommitted\n(default: github where a token and a repository are known, else local)")
	f.choices["publish"] = runner.PublishModes()
	f.text(&a.replay, "replay", "FILE", "take the model's answers from a scripted session instead of the API")
	f.list(&a.set, "set", "KEY=VALUE", "set a job key; may be repeated")
	f.text(&a.model, "model", "NAME", "model to ask")
	f.text(&a.job, "job", "JOB.yml", "the job file, where it is not the argument")
	f.text(&a.failOn, "fail-on", "LIST", "outcomes for which the exit status is not 0: names of outcomes, failures\nfor all whose status is not 0, none (default: failures)")
	f.choices["fail-on"] = failOnWords()
	f.on(&a.json, "json", "print each event of the transcript as a line of JSON on standard output")
	f.on(&a.quiet, "quiet", "no progress on standard error")
	return a.run
}

func (a *runArguments) run(ctx context.Context, p process, rest []string) int {
	if len(rest) == 0 && a.job != "" {
		rest = []string{a.job}
	}
	if problem := a.problem(rest, p.environ); problem != "" {
		return a.flags.wrong(p, "%s", problem)
	}
	failing, err := readFailOn(a.failOn)
	if err != nil {
		return a.flags.wrong(p, "%v", err)
	}
	options := runner.Options{
		Issue: a.issue, Prompt: a.prompt, PromptFile: a.promptFile,
		Dir: a.repo, Out: a.out, Publish: a.publish, Replay: a.replay, Set: append(setLines(p), a.set...), Model: a.model, Stdin: p.stdin,
		Surroundings: surroundings(p, a.quiet),
	}
	if len(rest) == 1 {
		options.JobFile = rest[0]
	}
	show := p.stdout
	if a.json {
		options.Events, show = p.stdout, p.stderr
	}
	ctx, hurry, stop := untilSignals(ctx, 2)
	defer stop()
	options.Hurry = hurry
	options.Stdin = inputUntil(ctx, p.stdin)
	result := runner.Run(ctx, options)
	showResult(show, p.stderr, result)
	return failing.status(result)
}

// problem says how the arguments contradict each other.
func (a *runArguments) problem(rest, environ []string) string {
	tasks := 0
	for _, task := range []string{a.issue, a.prompt, a.promptFile} {
		if task != "" {
			tasks++
		}
	}
	switch {
	case len(rest) > 1:
		return "it takes one job file, not " + strings.Join(rest, " ")
	case tasks > 1:
		return "--issue, --prompt and --prompt-file exclude each other"
	case tasks == 0 && len(rest) == 0 && !a.hasTask(environ):
		return "there is no task: give a job file, --issue, --prompt or --prompt-file; in GitHub Actions the event may bring one"
	case a.publish != "" && !slices.Contains(runner.PublishModes(), a.publish):
		return "--publish is one of " + strings.Join(runner.PublishModes(), ", ") + ", not " + a.publish
	}
	return ""
}

// hasTask says whether --set, the environment or an event brings the task.
func (a *runArguments) hasTask(environ []string) bool {
	bySet := slices.ContainsFunc(a.set, func(s string) bool { return strings.HasPrefix(s, "task.") })
	byEvent := slices.ContainsFunc(environ, func(s string) bool { return strings.HasPrefix(s, "GITHUB_EVENT_NAME=") })
	return bySet || byEvent || slices.ContainsFunc(environ, func(s string) bool { return strings.HasPrefix(s, flagPrefix+"TASK_") })
}

// surroundings are what a run takes from where the program was started.
func surroundings(p process, quiet bool) runner.Surroundings {
	return runner.Surroundings{Environ: p.environ, Reserved: reserved(), Version: version, Quiet: quiet, Progress: p.stderr, Step: stepOf(p)}
}
