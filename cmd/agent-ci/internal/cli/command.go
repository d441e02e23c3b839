// Package cli has what all commands share: flags, variables for flags, help, completion, signals, terminals
// and exit statuses.
package cli

import (
	"context"
	"errors"
	"flag"
	"io"
	"math"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
)

// Process has the environment and streams of a command, and the version of agent-ci.
type Process struct {
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // the release, or else the commit
	Build          onboard.Build
}

// Exit statuses of commands other than runs.
const (
	ExitOK      = 0
	ExitFailed  = 1
	ExitInvalid = 2
)

// Command describes a command: its help, its flags and its function.
type Command struct {
	Name        string
	Args        string // for the usage line
	About       string // one line
	Details     string
	Example     string
	Takes       Operands
	Subcommands []Subcommand // the choices for the first argument; may be nil
	// Define adds the command's flags, and returns the function that uses their values.
	Define      func(*FlagSet) RunFunc
	MostlyWaits bool // mostly waits for other processes, so memory matters more than CPU time
}

// Subcommand describes a subcommand.
type Subcommand struct {
	Name, Args, About, Details, Example string
	Flags                               []string // names of the command's flags that it takes
}

// RunFunc runs a command. operands are the arguments without the flags. Process.Report prints its error.
type RunFunc func(ctx context.Context, p Process, operands []string) error

// Operands limits the number of operands; the zero value permits none. Problem is the message for a wrong number.
type Operands struct {
	Least, Most int
	Problem     string
}

// AnyOperands permits any number. The command itself checks it.
var AnyOperands = Operands{Most: math.MaxInt}

// Run parses the arguments and runs the command. It returns the exit status.
func (c Command) Run(ctx context.Context, p Process, args []string) int {
	flags := newFlags(c)
	runCommand := c.Define(flags)
	operands, err := flags.parse(p, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(p.Stdout, flags.helpText(operands))
	case err == nil:
		err = runCommand(ctx, p, operands)
	}
	return p.Report(c.Name, err)
}

// subcommand returns the subcommand that the words begin with, or nil.
func (c Command) subcommand(words []string) *Subcommand {
	for i := range c.Subcommands {
		if len(words) > 0 && c.Subcommands[i].Name == words[0] {
			return &c.Subcommands[i]
		}
	}
	return nil
}

// OwnVariables returns the variables of the command's flags that set no job key.
func (c Command) OwnVariables() (names []string) {
	flags := newFlags(c)
	c.Define(flags)
	for _, name := range flags.order {
		if !slices.Contains(flags.JobKeys, name) {
			names = append(names, variableOf(name))
		}
	}
	return names
}

// Variable returns the value of an environment variable, or "".
func (p Process) Variable(name string) string { return stage.Variable(p.Environ, name) }
