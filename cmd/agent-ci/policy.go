package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/job"
)

// repositoryRules is where a repository keeps its rules.
const repositoryRules = ".github/agent-ci.rules"

// sandboxModes are the values of policy.sandbox.
var sandboxModes = []string{"read-only", "workspace-write", "danger-full-access"}

// sandboxNetworks are the values of policy.network that are no list of hosts.
var sandboxNetworks = []string{"none", "loopback", "full"}

func policyCommand() command {
	return command{
		name:  "policy",
		args:  "check [--rules F]... [--sandbox MODE] -- CMD...",
		about: "show whether a command may run, as JSON, and which rules match",
		details: `
check decides on a command as a run would, without running it: run,
run_sandboxed or refuse, with the rule, the reason and what to do instead. A
single argument with spaces is read as a script. Without --rules the rules are
` + repositoryRules + ` of this folder, if it is there; a run reads that file
from the base commit.

The exit status is 0 whatever the decision, and 2 when the rules have a mistake.`,
		example: `
agent-ci policy check -- git push --force
agent-ci policy check --rules team.rules -- 'make && sudo make install'`,
		takes: anyOperands, define: policyCheck,
	}
}

func policyCheck(flags *flagSet) deed {
	var files []string
	var mode string
	flags.list(&files, "rules", "FILE", "rules file; may be given several times")
	flags.text(&mode, "sandbox", "MODE", "read-only, workspace-write (default) or danger-full-access", sandboxModes...)
	return func(ctx context.Context, p process, rest []string) int {
		switch {
		case len(rest) == 0 || rest[0] != "check":
			return flags.wrong(p, "its one subcommand is check")
		case len(rest) == 1:
			return flags.wrong(p, "there is no command to check; give one after --")
		case mode != "" && !slices.Contains(sandboxModes, mode):
			return flags.wrong(p, "--sandbox is one of %s, not %q", strings.Join(sandboxModes, ", "), mode)
		}
		set, err := readRules(ctx, files)
		if err != nil {
			fmt.Fprintf(p.stderr, "agent-ci policy: the rules cannot be used:\n%v\n", err)
			return exitInvalid
		}
		if err := writeJSON(p.stdout, commandsIn(mode, set).Decide(requested(rest[1:]))); err != nil {
			return exitFailed
		}
		return exitOK
	}
}

func requested(words []string) policy.Request {
	dir, _ := os.Getwd() // without one, relative paths are not judged
	if len(words) == 1 && strings.ContainsAny(words[0], " \t\n") {
		return policy.Request{Script: words[0], Dir: dir}
	}
	return policy.Request{Argv: words, Dir: dir}
}

// commandsIn are the decisions in a sandbox mode with all layers, with this
// folder as the workspace.
func commandsIn(mode string, set *rules.Set) policy.Commands {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd() // without one nothing is below it
	level := sandbox.LevelFull
	if grants.Mode(mode) == grants.DangerFullAccess {
		level = sandbox.LevelNone
	}
	o := sandbox.Options{Folders: grants.Folders{Mode: cmp.Or(grants.Mode(mode), grants.WorkspaceWrite), Workspace: dir, Home: home}}
	return policy.Commands{Rules: set, Confined: level != sandbox.LevelNone, Home: home, Writable: o.WritableAt(level)}
}

func readRules(ctx context.Context, names []string) (*rules.Set, error) {
	optional := len(names) == 0
	if optional {
		names = []string{repositoryRules}
	}
	var files []rules.File
	for _, name := range names {
		data, err := given.Read(ctx, name, job.MaxSize)
		if optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w; check the path", err)
		}
		files = append(files, rules.File{Name: name, Data: data})
	}
	return rules.Load(files...)
}
