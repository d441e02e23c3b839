package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Variables of action inputs that not every command of the action has as a flag.
const (
	commandVariable   = flagPrefix + "COMMAND"
	directoryVariable = flagPrefix + "RUN_DIRECTORY"
	jobVariable       = flagPrefix + "JOB"
	issueVariable     = flagPrefix + "TASK_ISSUE"
)

func actionCommand() command {
	return command{
		name:  "action",
		about: "run as the GitHub Action: run, repair, publish or install",
		details: `
AGENT_CI_COMMAND is run (the default), repair, publish or install.
AGENT_CI_RUN_DIRECTORY is the run directory; for repair, AGENT_CI_TASK_ISSUE is the
pull request. Everything else is as for these commands. install runs nothing: it puts
agent-ci on the PATH of the next steps. docs/reference/action.md has the inputs of the action.`,
		example: `
AGENT_CI_TASK_PROMPT="Fix the failing test" agent-ci action`,
		define: action, waits: true,
	}
}

// action runs the command that the action's inputs name, with their values as arguments.
func action(flags *flagSet) runFunc {
	return func(ctx context.Context, p process, _ []string) int {
		var args, file []string
		directory := p.variable(directoryVariable)
		if directory != "" {
			args = []string{"--out", directory}
		}
		if name := p.variable(jobVariable); name != "" {
			file = []string{"--", name}
		}
		switch name := p.variable(commandVariable); name {
		case "", "run":
			return runCommand().run(ctx, p, append(args, file...))
		case "repair":
			return repairCommand().run(ctx, p.withoutIssue(), append(args, p.repairOperands()...))
		case "publish":
			if directory == "" {
				return flags.wrong(p, "the command publish needs the input run-directory: the run whose change it publishes")
			}
			return publishCommand().run(ctx, p, []string{"--", directory})
		case "install":
			return install(p, flags)
		default:
			return flags.wrong(p, "the input command is run, repair, publish or install, not %s", name)
		}
	}
}

// runInputs lists, by variable, the inputs that only runs use.
var runInputs = []struct{ variable, input string }{
	{jobVariable, "job"},
	{flagPrefix + "TASK_PROMPT", "prompt"},
	{issueVariable, "issue"},
	{setVariable, "set"},
	{flagPrefix + "MODEL_NAME", "model"},
	{flagPrefix + "PUBLISH", "publish"},
	{directoryVariable, "run-directory"},
	{flagPrefix + "REPO", "path"},
	{"OPENAI_API_KEY", "openai-api-key"},
	{"OPENAI_BASE_URL", "openai-base-url"},
}

// install adds this program to the PATH of the job's later steps. It refuses inputs that only runs use.
func install(p process, flags *flagSet) int {
	for _, of := range runInputs {
		if p.variable(of.variable) != "" {
			return flags.wrong(p, "the command install runs nothing and has no use for the input %s; leave it out, and give it to the step that runs agent-ci", of.input)
		}
	}
	list := p.variable("GITHUB_PATH")
	if list == "" {
		return flags.wrong(p, "the command install needs GITHUB_PATH, which a step of GitHub Actions has")
	}
	if err := addFolder(list); err != nil {
		return failed(p, "install", err)
	}
	fmt.Fprintln(p.stdout, "The steps that follow find agent-ci.")
	return exitOK
}

// addFolder appends this program's folder to list, the file of GITHUB_PATH.
func addFolder(list string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	f, err := os.OpenFile(list, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the runner's list of folders: %w", err)
	}
	_, err = fmt.Fprintln(f, filepath.Dir(program))
	return errors.Join(err, f.Close())
}

// repairOperands returns a repair's operands: the pull request, by number for the workflow's own
// repository, and the job.
func (p process) repairOperands() []string {
	pull := p.variable(issueVariable)
	if _, err := strconv.Atoi(strings.TrimPrefix(pull, "#")); err == nil {
		pull = p.variable("GITHUB_REPOSITORY") + "#" + strings.TrimPrefix(pull, "#")
	}
	operands := []string{"--", pull}
	if job := p.variable(jobVariable); job != "" {
		operands = append(operands, job)
	}
	return operands
}

// withoutIssue returns p without the job key task.issue: the pull request to repair is not a task.
func (p process) withoutIssue() process {
	p.environ = slices.DeleteFunc(slices.Clone(p.environ), func(s string) bool { return strings.HasPrefix(s, issueVariable+"=") })
	return p
}
