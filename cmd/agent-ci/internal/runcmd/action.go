package runcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
)

// Variables of action inputs that not every command of the action has as a flag.
const (
	commandVariable   = cli.FlagPrefix + "COMMAND"
	directoryVariable = cli.FlagPrefix + "RUN_DIRECTORY"
	jobVariable       = cli.FlagPrefix + "JOB"
	issueVariable     = cli.FlagPrefix + "TASK_ISSUE"
)

func ActionCommand() cli.Command {
	return cli.Command{
		Name:  "action",
		About: "run as the GitHub Action: run, repair, publish or install",
		Details: `
AGENT_CI_COMMAND is run (the default), repair, publish or install.
AGENT_CI_RUN_DIRECTORY is the run directory; for repair, AGENT_CI_TASK_ISSUE is the
pull request. Everything else is as for these commands. install runs nothing: it puts
agent-ci on the PATH of the next steps. docs/reference/action.md has the inputs of the action.`,
		Example: `
AGENT_CI_TASK_PROMPT="Fix the failing test" agent-ci action`,
		Define: defineAction, MostlyWaits: true,
	}
}

// defineAction returns a function that runs the command that the action's inputs name, with their values as arguments.
func defineAction(*cli.FlagSet) cli.RunFunc {
	return func(ctx context.Context, p cli.Process, _ []string) error {
		var outFlag, jobFile []string
		directory := p.Variable(directoryVariable)
		if directory != "" {
			outFlag = []string{"--out", directory}
		}
		if job := p.Variable(jobVariable); job != "" {
			jobFile = []string{"--", job}
		}
		switch name := p.Variable(commandVariable); name {
		case "", "run":
			return cli.Exit(RunCommand().Run(ctx, p, append(outFlag, jobFile...)), nil)
		case "repair":
			return cli.Exit(RepairCommand().Run(ctx, withoutIssue(p), append(outFlag, repairOperands(p)...)), nil)
		case "publish":
			if directory == "" {
				return cli.Misuse("the command publish needs the input run-directory: the run whose change it publishes")
			}
			return cli.Exit(PublishCommand().Run(ctx, p, []string{"--", directory}), nil)
		case "install":
			return installOnPath(p)
		default:
			return cli.Misuse("the input command is run, repair, publish or install, not %s", name)
		}
	}
}

// runInputs lists, by variable, the inputs that only runs use.
var runInputs = []struct{ variable, input string }{
	{jobVariable, "job"},
	{cli.FlagPrefix + "TASK_PROMPT", "prompt"},
	{issueVariable, "issue"},
	{setVariable, "set"},
	{cli.FlagPrefix + "MODEL_NAME", "model"},
	{cli.FlagPrefix + "PUBLISH", "publish"},
	{directoryVariable, "run-directory"},
	{cli.FlagPrefix + "REPO", "path"},
	{"OPENAI_API_KEY", "openai-api-key"},
	{"OPENAI_BASE_URL", "openai-base-url"},
}

// installOnPath adds this program to the PATH of the job's later steps. It refuses inputs that only runs use.
func installOnPath(p cli.Process) error {
	for _, each := range runInputs {
		if p.Variable(each.variable) != "" {
			return cli.Misuse("the command install runs nothing and has no use for the input %s; leave it out, and give it to the step that runs agent-ci", each.input)
		}
	}
	pathFile := p.Variable("GITHUB_PATH")
	if pathFile == "" {
		return cli.Misuse("the command install needs GITHUB_PATH, which a step of GitHub Actions has")
	}
	if err := addToPath(pathFile); err != nil {
		return cli.Exit(p.Report("install", err), nil)
	}
	p.Print("The steps that follow find agent-ci.")
	return nil
}

// addToPath appends this program's folder to pathFile, the file of GITHUB_PATH.
func addToPath(pathFile string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	f, err := os.OpenFile(pathFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the runner's list of folders: %w", err)
	}
	_, err = fmt.Fprintln(f, filepath.Dir(program))
	return errors.Join(err, f.Close())
}

// repairOperands returns a repair's operands: the pull request and the job. A number alone means a pull request of
// the workflow's own repository.
func repairOperands(p cli.Process) []string {
	pull := p.Variable(issueVariable)
	number := strings.TrimPrefix(pull, "#")
	if _, err := strconv.Atoi(number); err == nil {
		pull = p.Variable("GITHUB_REPOSITORY") + "#" + number
	}
	operands := []string{"--", pull}
	if job := p.Variable(jobVariable); job != "" {
		operands = append(operands, job)
	}
	return operands
}

// withoutIssue returns p without the job key task.issue: the pull request to repair is not a task.
func withoutIssue(p cli.Process) cli.Process {
	p.Environ = slices.DeleteFunc(slices.Clone(p.Environ), func(s string) bool { return strings.HasPrefix(s, issueVariable+"=") })
	return p
}
