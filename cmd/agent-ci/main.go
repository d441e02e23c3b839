// Command agent-ci runs a coding agent in CI: it reads a task, lets the agent
// work on a checkout, verifies the change and publishes it as a pull request.
//
// This package owns the command line: flags, help, signals and output. Package runner implements the
// commands.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
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
		os.Exit(engine.Main(os.Stdin, os.Stdout, os.Stderr))
	}
	proc.Conceal()
	if version == unknownVersion {
		version = versionOf(built())
	}
	start := dispatch
	if filepath.Base(os.Args[0]) == applyPatchName {
		start = applyPatchAlone
	}
	os.Exit(start(context.Background(), process{
		environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}, os.Args[1:]))
}

// process has the environment and streams of a command.
type process struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Exit statuses of commands other than runs.
const (
	exitOK      = 0
	exitFailed  = 1
	exitInvalid = 2
)

// command describes a command: its help, its flags and its function.
type command struct {
	name        string
	args        string // for the usage line
	about       string // one line
	details     string
	example     string
	takes       operands
	subcommands []subcommand // the choices for the first argument; may be nil
	// define adds the command's flags, and returns the function that uses their values.
	define func(*flagSet) runFunc
	waits  bool // mostly waits for other processes, so memory matters more than CPU time
}

// subcommand describes a subcommand. flags names those of the command's flags that it takes.
type subcommand struct {
	name, args, about, details, example string
	flags                               []string
}

// runFunc runs a command and returns its exit status. rest are its operands.
type runFunc func(ctx context.Context, p process, rest []string) int

// operands limits the number of arguments besides flags. problem is the message for a wrong number. The
// zero value permits none.
type operands struct {
	least, most int
	problem     string
}

// anyOperands permits any number. The command itself checks it.
var anyOperands = operands{most: math.MaxInt}

// runOrLast permits one run, or none with --last.
var runOrLast = operands{0, 1, "it takes one run directory, the id of a run, or --last"}

// run parses the arguments and runs the command. It returns the exit status.
func (c command) run(ctx context.Context, p process, args []string) int {
	flags := newFlags(c)
	do := c.define(flags)
	rest, status, done := flags.parse(p, args)
	if done {
		return status
	}
	return do(ctx, p, rest)
}

// commands returns all commands, in the order of the help.
func commands() []command {
	return []command{
		runCommand(), repairCommand(), resumeCommand(), replayCommand(), publishCommand(), validateCommand(), schemaCommand(), reportCommand(), runsCommand(), campaignCommand(),
		sandboxCommand(), doctorCommand(), actionCommand(), initCommand(), completionCommand(), versionCommand(),
	}
}

// dispatch runs the command that the first argument names, and returns its exit status.
func dispatch(ctx context.Context, p process, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(p.stderr, overview())
		return exitInvalid
	}
	p = wrapStepOutput(p)
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(rest) == 0 {
			fmt.Fprint(p.stdout, overview())
			return exitOK
		}
		name, rest = rest[0], []string{"--help"}
	case "-version", "--version":
		name = "version"
	}
	all := commands()
	known := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if known < 0 {
		return unknownCommand(p, name)
	}
	if all[known].waits && os.Getenv("GOGC") == "" {
		collectEarly()
	}
	return all[known].run(ctx, p, rest)
}

// commandAliases maps words that people try to the commands that they probably mean.
var commandAliases = map[string]string{
	"fetch": "report", "download": "report", "show": "report", "verify": "report", "check": "validate", "lint": "validate", "skills": "validate",
	"hooks": "validate", "list": "runs", "ls": "runs", "prune": "runs prune", "policy": "sandbox --explain", "explain": "sandbox --explain", "setup": "init",
}

// unknownCommand prints the command that was probably meant, or else all commands. It returns the exit status.
func unknownCommand(p process, name string) int {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	if meant := cmp.Or(commandAliases[name], config.Nearest(name, names)); meant != "" {
		fmt.Fprintf(p.stderr, "agent-ci: there is no command %q; did you mean %s?\nRun agent-ci help for the commands.\n", name, meant)
		return exitInvalid
	}
	fmt.Fprintf(p.stderr, "agent-ci: %s.\n\n%s", outcome.ShortenNames(fmt.Sprintf("there is no command %q", name)), overview())
	return exitInvalid
}

// overview returns the help of agent-ci, with all commands.
func overview() string {
	var s strings.Builder
	s.WriteString("agent-ci runs a coding agent in CI and turns its change into a pull request.\n\nUsage:\n  agent-ci COMMAND [FLAGS]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&s, "  %-12s %s\n", c.name, c.about)
	}
	s.WriteString("\nagent-ci COMMAND --help shows more, with an example.\n")
	return s.String()
}

// written returns the exit status of a command that only writes to standard output.
func written(err error) int {
	if err != nil {
		return exitFailed
	}
	return exitOK
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
