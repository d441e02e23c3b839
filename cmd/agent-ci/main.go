// Command agent-ci runs a coding agent in CI: it reads a task, lets the agent
// work on a checkout, verifies the change and publishes it as a pull request.
//
// This package has the list of commands and starts one. The packages below internal have the commands, with
// their flags, help and output. Package runner does the work.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	_ "github.com/agent-ci/agent-ci/cmd/agent-ci/internal/applypatch" // runs under the name apply_patch
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/campaigncmd"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/runcmd"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/sandboxcmd"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/setupcmd"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/code/engine"
)

// version is set by the build (-X main.version). Otherwise main sets it from Go's build information.
var version = unknownVersion

const unknownVersion = "unknown"

// commit is the full commit id, set by make build (-X main.commit). It ends in -dirty if the tree had
// changes. If it is empty, Go's build information may have the commit.
var commit string

func main() {
	if len(os.Args) == 2 && os.Args[1] == code.EngineCommand {
		os.Exit(engine.Main(engine.MaxBusy))
	}
	proc.Conceal()
	http.DefaultTransport.(*http.Transport).OnProxyConnectResponse = reach.RefusedByProxy // errors name the proxy
	build := readBuild()
	if version == unknownVersion {
		version = describeVersion(build)
	}
	os.Exit(dispatch(context.Background(), cli.Process{
		Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version, Build: build,
	}, os.Args[1:]))
}

// commands returns all commands, in the order of the help.
func commands() []cli.Command {
	return []cli.Command{
		runcmd.RunCommand(), runcmd.RepairCommand(), runcmd.ResumeCommand(), runcmd.ReplayCommand(), runcmd.PublishCommand(), setupcmd.ValidateCommand(), setupcmd.SchemaCommand(), runcmd.ReportCommand(), runcmd.RunsCommand(), campaigncmd.Command(),
		sandboxcmd.Command(), setupcmd.DoctorCommand(), runcmd.ActionCommand(), setupcmd.InitCommand(), completionCommand(), versionCommand(),
	}
}

// dispatch runs the command that the first argument names, and returns its exit status. It reports output that
// was lost.
func dispatch(ctx context.Context, p cli.Process, args []string) int {
	output := &cli.Output{Writer: p.Stdout}
	defer output.ReportLoss(p.Stderr)
	p.Stdout = output
	if len(args) == 0 {
		fmt.Fprint(p.Stderr, overview())
		return cli.ExitInvalid
	}
	p = escapeStepOutput(p)
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(rest) == 0 {
			_, err := io.WriteString(p.Stdout, overview())
			return p.Report("help", err)
		}
		name, rest = rest[0], []string{"--help"}
	case "-version", "--version":
		name = "version"
	}
	all := commands()
	i := slices.IndexFunc(all, func(c cli.Command) bool { return c.Name == name })
	if i < 0 {
		return unknownCommand(p, name)
	}
	command := all[i]
	if command.MostlyWaits && os.Getenv("GOGC") == "" {
		collectEarly()
	}
	return command.Run(ctx, p, rest)
}

// commandAliases maps words that people try to the commands that they probably mean.
var commandAliases = map[string]string{
	"fetch": "report", "download": "report", "show": "report", "verify": "report", "check": "validate", "lint": "validate", "skills": "validate",
	"hooks": "validate", "list": "runs", "ls": "runs", "prune": "runs prune", "policy": "sandbox --explain", "explain": "sandbox --explain", "setup": "init",
}

// unknownCommand prints the command that was probably meant, or else all commands. It returns the exit status.
func unknownCommand(p cli.Process, name string) int {
	var names []string
	for _, c := range commands() {
		names = append(names, c.Name)
	}
	if meant := cmp.Or(commandAliases[name], config.Nearest(name, names)); meant != "" {
		fmt.Fprintf(p.Stderr, "agent-ci: there is no command %q; did you mean %s?\nRun agent-ci help for the commands.\n", name, meant)
		return cli.ExitInvalid
	}
	fmt.Fprintf(p.Stderr, "agent-ci: %s.\n\n%s", outcome.ShortenNames(fmt.Sprintf("there is no command %q", name)), overview())
	return cli.ExitInvalid
}

// overview returns the help of agent-ci, with all commands.
func overview() string {
	var s strings.Builder
	s.WriteString("agent-ci runs a coding agent in CI and turns its change into a pull request.\n\nUsage:\n  agent-ci COMMAND [FLAGS]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&s, "  %-12s %s\n", c.Name, c.About)
	}
	s.WriteString("\nagent-ci COMMAND --help shows more, with an example.\n")
	return s.String()
}

// escapeStepOutput returns p. In GitHub Actions, its output streams then escape text that would act as a
// workflow command.
func escapeStepOutput(p cli.Process) cli.Process {
	if p.Variable("GITHUB_ACTIONS") != "true" {
		return p
	}
	p.Stdout, p.Stderr = actions.NewLog(p.Stdout), actions.NewLog(p.Stderr)
	return p
}
