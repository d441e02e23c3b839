// Package sandboxcmd has the command sandbox, which runs a command confined like the agent's or explains the rules for it.
package sandboxcmd

import (
	"context"
	"errors"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/runcmd"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// exitNotStarted is the exit status if the command does not start, as in shells.
const exitNotStarted = 127

func Command() cli.Command {
	return cli.Command{
		Name:  "sandbox",
		Args:  "[--mode MODE] [--network NETWORK] [--repo DIR] [--explain] -- CMD...",
		About: "run a command confined like the agent's, or explain its rules",
		Details: `
The command is judged by the rules and runs with the environment and sandbox of the
agent's commands, by the base commit's defaults and the variables of job keys
(AGENT_CI_POLICY_SANDBOX …). It works in the checkout itself, so its changes there
stay. Its /tmp, and its changes in the home folder and in cache folders, are deleted at
its end. It has a terminal if standard input and output are one. If it fails, a line
on standard error shows what it could reach on the network.

With --explain nothing runs. It prints as JSON what becomes of the command: run,
run_sandboxed or refuse, with the rule, the reason and what to do instead. A single
argument with spaces is read as a script. Without --rules the rules are
` + repositoryRules + ` of this folder, committed or not.

The exit status is the command's, 128+n if signal n ended it, 127 if it could not
start, and otherwise that of the outcome: 2 invalid_input, 6 refused by a rule, 9 not
confined. With --explain it is 0 whatever the decision, and 2 if the rules have a mistake.`,
		Example: `
agent-ci sandbox -- go test ./...
agent-ci sandbox --network full -- make deps
agent-ci sandbox --mode read-only -- sh -c 'touch x'
agent-ci sandbox --explain -- git push --force`,
		Takes:  cli.Operands{Least: 1, Most: math.MaxInt, Problem: "there is no command; give one after --"},
		Define: defineSandbox,
	}
}

// defineSandbox defines the flags of agent-ci sandbox. The function that it returns runs or explains the command.
func defineSandbox(flags *cli.FlagSet) cli.RunFunc {
	var o sandboxcommand.Options
	flags.Text(&o.Mode, "mode", "MODE", strings.Join(sandboxModes, ", ")+"\n(default: what is configured, else workspace-write)", sandboxModes...)
	flags.Text(&o.Network, "network", "NETWORK", "what it reaches: a value of policy.network\n(default: what is configured, else loopback)", sandboxNetworks...)
	flags.Text(&o.Dir, "repo", "DIR", "checkout or folder to run in (default: the current folder)")
	var explained bool
	var rules []string
	flags.Boolean(&explained, "explain", "run nothing; print as JSON whether the command may run, and which rules match")
	flags.List(&rules, "rules", "FILE", "with --explain: rules file; may be repeated")
	return func(ctx context.Context, p cli.Process, argv []string) error {
		switch {
		case len(rules) > 0 && !explained:
			return cli.Misuse("--rules goes with --explain; a run has the files of policy.rules")
		case explained && (o.Network != "" || o.Dir != ""):
			return cli.Misuse("--explain takes --mode and --rules alone")
		case explained && o.Mode != "" && !slices.Contains(sandboxModes, o.Mode):
			return cli.Misuse("--mode is one of %s, not %q", strings.Join(sandboxModes, ", "), o.Mode)
		case explained:
			return printDecision(ctx, p, o.Mode, rules, argv)
		}
		signals := make(chan os.Signal, 8) // from before the session exists, so that no signal leaves parts of it behind
		signal.Notify(signals, cli.UnlessNohup(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)...)
		o.Environ, o.Reserved = p.Environ, runcmd.ReservedVariables()
		session, err := sandboxcommand.Open(ctx, o)
		if err != nil {
			return startFailure(err)
		}
		for _, warning := range session.Warnings() {
			p.Note("agent-ci sandbox: warning: %s", warning)
		}
		return runIn(session, p, argv, signals)
	}
}

// startFailure returns the error of a command that did not start, with its exit status.
func startFailure(err error) error {
	status := cli.ExitFailed
	if stop, is := errors.AsType[*outcome.Stop](err); is {
		status = stop.Outcome.ExitCode()
	} else if errors.Is(err, sandbox.ErrNotStarted) {
		status = exitNotStarted
	}
	return cli.Exit(status, errors.New(strings.TrimSuffix(err.Error(), ".")))
}

// runIn runs a command, on a terminal if p has one, and closes the session. The error has the command's exit
// status.
func runIn(session *sandboxcommand.Session, p cli.Process, argv []string, signals <-chan os.Signal) error {
	start := startPiped
	if cli.OnTerminal(p) {
		start = startOnTerminal
	}
	running, err := start(session, p, argv)
	if err != nil {
		return startFailure(errors.Join(err, session.Close()))
	}
	forwardSignals(running.process, signals)
	status, err := running.process.Wait()
	closeErr := session.Close() // before finish: background processes of the command may keep its output open
	running.finish()
	for _, problem := range []error{err, closeErr} {
		if problem != nil {
			p.Note("agent-ci sandbox: %v", problem)
		}
	}
	if err != nil {
		return cli.Exit(cli.ExitFailed, nil)
	}
	if network := session.Network(); status.ExitCode != 0 && network != "" {
		p.Note("agent-ci sandbox: %s", network)
	}
	return cli.Exit(status.ExitCode, nil)
}

// forwardSignals sends this process's signals to the command until it ends.
func forwardSignals(running *sandbox.Process, signals <-chan os.Signal) {
	for {
		select {
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok {
				running.Signal(number)
			}
		case <-running.Done():
			return
		}
	}
}
