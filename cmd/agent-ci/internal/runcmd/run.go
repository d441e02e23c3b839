// Package runcmd has the commands that start, resume, repeat, publish, show and prune runs.
package runcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools/code"
)

func RunCommand() cli.Command {
	return cli.Command{
		Name:  "run",
		Args:  "[JOB.yml] [--issue REF | --prompt TEXT | --prompt-file FILE] [FLAGS]",
		About: "run a job: let the agent work, verify the change, publish it",
		Details: `
The task comes from the job file, or from --issue, --prompt or --prompt-file.

Settings come from flags, then --set, then variables named after job keys
(AGENT_CI_LIMITS_TURNS for limits.turns), then the job file, then
.github/agent-ci.yml of the base commit, then the defaults. Other flags have
variables too: AGENT_CI_REPO for --repo.

OPENAI_API_KEY has the model's key, GITHUB_TOKEN the token of GitHub. The exit
status is 0 for changed, no_changes and skipped; docs/reference/outcomes.md lists the others.

Commands run confined, and without these keys in their environment; see
docs/security.md. If this machine cannot confine commands, the run ends as
sandbox_unavailable before the model is asked. With
--set policy.sandbox=danger-full-access commands run UNCONFINED, with all your
rights: use a machine or container of its own then.`,
		Example: `
OPENAI_API_KEY=… GITHUB_TOKEN=… agent-ci run --issue https://github.com/octo-org/widgets/issues/7
agent-ci run jobs/lint.yml --set limits.turns=50
agent-ci run --prompt "Fix the failing test" --publish none`,
		Takes: cli.AnyOperands, Define: defineRun, MostlyWaits: true,
	}
}

// defineRun defines the flags of agent-ci run. The function that it returns runs the job.
func defineRun(f *cli.FlagSet) cli.RunFunc {
	var o runner.Options
	var failOn string
	var asJSON bool
	f.FromVariables = true
	f.JobKeys = []string{"issue", "prompt", "prompt-file", "model", "set"}
	f.Text(&o.Issue, "issue", "REF", "take the task from an issue: its address, OWNER/REPO#N, or #N in the repository's checkout")
	f.Text(&o.Prompt, "prompt", "TEXT", "take the task from the command line")
	f.Text(&o.PromptFile, "prompt-file", "FILE", "take the task from a file, - for standard input")
	f.Text(&o.Dir, "repo", "DIR", "checkout to work in (default: the current folder)")
	f.Text(&o.Out, "out", "DIR", "run directory, new or empty (default: a new one below $RUNNER_TEMP,\nelse below the user's state folder)")
	f.Text(&o.Publish, "publish", "MODE", "github: push to GitHub and open a pull request;\nlocal: commit on the task's branch, push if the origin is on this machine;\nnone: leave the change in the checkout, uncommitted\n(default: github where a token and a repository are known, else local)", publish.Modes()...)
	f.OperatorFile(&o.Operator)
	f.Replay(&o.Replay)
	f.Assignments(&o.Set)
	f.Text(&o.Model, "model", "NAME", "model to ask")
	f.Text(&failOn, "fail-on", "LIST", "outcomes that fail the command, separated by commas; failures: all with an\nexit status other than 0; none: no outcome (default: failures)", failOnChoices()...)
	f.Boolean(&o.NoBaselineCache, "no-baseline-cache", "run all checks on the base, even if an earlier run found them green there")
	f.JSONEvents(&asJSON)
	f.Quiet(&o.Quiet)
	return func(ctx context.Context, p cli.Process, jobFiles []string) error {
		if len(jobFiles) == 1 {
			o.JobFile = jobFiles[0]
		}
		if problem := argumentProblem(o, jobFiles, p.Environ); problem != "" {
			return cli.Misuse("%s", problem)
		}
		return runJob(ctx, p, o, failOn, asJSON)
	}
}

// runJob runs a job. failOn holds the value of --fail-on.
func runJob(ctx context.Context, p cli.Process, o runner.Options, failOn string, asJSON bool) error {
	failing, err := parseFailOn(failOn)
	if err != nil {
		return cli.Misuse("%w", err)
	}
	result := runUntilSignal(ctx, p, asJSON, &o.Surroundings, func(ctx context.Context) record.Result {
		o.Set, o.Stdin = append(VariableAssignments(p), o.Set...), cli.CancellableInput(ctx, p.Stdin)
		return runner.Run(ctx, o)
	})
	return cli.Exit(failing.exitStatus(result), nil)
}

// argumentProblem returns why the arguments do not fit together, or "".
func argumentProblem(o runner.Options, jobFiles, environ []string) string {
	files := strings.Join(jobFiles, " ")
	taskFlags := slices.DeleteFunc([]string{o.Issue, o.Prompt, o.PromptFile}, func(task string) bool { return task == "" })
	switch {
	case len(jobFiles) > 1:
		return fmt.Sprintf("it takes one job file, not %s; give a task as --prompt %q", files, files)
	case strings.Contains(files, " ") && !pathExists(files): // a task rather than a file name
		return fmt.Sprintf("there is no file %q; give a task as --prompt %q", files, files)
	case len(taskFlags) > 1:
		return "--issue, --prompt and --prompt-file exclude each other"
	case len(taskFlags) == 0 && len(jobFiles) == 0 && !hasTask(o.Set, environ):
		return "there is no task: give a job file, --issue, --prompt or --prompt-file; in GitHub Actions the event may bring one"
	case o.Publish != "" && !slices.Contains(publish.Modes(), o.Publish):
		return "--publish is one of " + strings.Join(publish.Modes(), ", ") + ", not " + o.Publish
	}
	return ""
}

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// hasTask reports whether --set, the environment or an event defines the task.
func hasTask(set, environ []string) bool {
	hasPrefix := func(list []string, prefix string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
	return hasPrefix(set, "task.") || hasPrefix(environ, "GITHUB_EVENT_NAME=") || hasPrefix(environ, cli.FlagPrefix+"TASK_")
}

// runUntilSignal sets around, calls run and prints its result. The first signal cancels ctx, the second one
// around.ForceStop. With asJSON, the events go to standard output and the result to standard error.
func runUntilSignal(ctx context.Context, p cli.Process, asJSON bool, around *runner.Surroundings, run func(context.Context) record.Result) record.Result {
	*around = newSurroundings(p, around.Quiet)
	if asJSON { // no status line: the reader of the events may write to the same terminal
		around.Events, around.Terminal, p.Stdout = p.Stdout, nil, p.Stderr
	}
	ctx, forced, stop := cli.UntilSignals(ctx, 2)
	defer stop()
	around.ForceStop = forced
	result := run(ctx)
	showResult(p, result)
	return result
}

// newSurroundings returns the environment of a run in this process: variables, streams, terminal, step.
func newSurroundings(p cli.Process, quiet bool) runner.Surroundings {
	return runner.Surroundings{
		Environ: p.Environ, Reserved: ReservedVariables(), Version: p.Version, ScriptEngine: scriptEngine(), Quiet: quiet, Progress: p.Stderr, Terminal: cli.StatusTerminal(p), Step: workflowStep(p),
	}
}

// scriptEngine returns the command line that starts this program as the engine for scripts. It returns
// nil if the program's path is unknown.
func scriptEngine() []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{program, code.EngineCommand}
}

// showResult prints the result of a run, and its problems and errors on standard error.
func showResult(p cli.Process, r record.Result) {
	if len(r.Problems) > 1 { // the message already has a single problem
		for _, problem := range r.Problems {
			p.Note("%s", problem)
		}
	}
	for _, problem := range r.Errors {
		p.Note("agent-ci: could not be written: %s", problem)
	}
	p.Print("%s/%s: %s", r.Outcome, r.Reason, r.Message)
	showChange(p, r)
	if r.Directory == "" {
		return
	}
	line := func(name, value string) { p.Print("%-13s %s", name+":", value) }
	if r.PullRequest.URL != "" {
		line("pull request", fmt.Sprintf("%s (%s)", r.PullRequest.URL, r.PullRequest.Operation))
	}
	if r.BodyFile != "" {
		line("body", filepath.Join(r.Directory, r.BodyFile))
	}
	if r.ReportFile != "" {
		line("report", filepath.Join(r.Directory, r.ReportFile))
	}
	if r.BeganWork {
		line("commands", describeConfinement(r.Sandbox))
	}
	if r.File != "" {
		line("result", filepath.Join(r.Directory, r.File))
	}
}

// describeConfinement describes how commands were confined.
func describeConfinement(c record.Confinement) string {
	if len(c.Layers) == 0 {
		return "ran UNCONFINED, with all rights of this user"
	}
	return "were confined: " + c.Level + " (work tree: " + c.WorkTree + ")" // the log and result.json list the layers
}

// showChange prints the branch and the changed files, the first 20.
func showChange(p cli.Process, r record.Result) {
	if r.Branch != "" {
		p.Print("%-13s %s (%.12s)", "branch:", r.Branch, r.HeadSHA)
	}
	if r.Changes == nil {
		return
	}
	const maxFiles = 20
	for i, f := range r.ChangedFiles {
		if i == maxFiles {
			p.Print("  … %d more files", len(r.ChangedFiles)-maxFiles)
			break
		}
		size := fmt.Sprintf("+%d -%d", f.Insertions, f.Deletions)
		if f.Binary {
			size = "(binary)"
		}
		p.Print("  %s %s %s", f.Status, markdown.FileName(f.Path), size)
	}
	p.Print("  %s, +%d -%d", transcript.CountNoun(r.Changes.Files, "file"), r.Changes.Insertions, r.Changes.Deletions)
}
