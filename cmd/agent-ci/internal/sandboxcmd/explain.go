package sandboxcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// repositoryRules is the path of a repository's rules on commands.
const repositoryRules = ".github/agent-ci.rules"

// sandboxModes are the values of policy.sandbox.
var sandboxModes = []string{"read-only", "workspace-write", "danger-full-access"}

// sandboxNetworks lists the fixed values of policy.network. Lists of hosts are allowed too.
var sandboxNetworks = []string{"none", "loopback", "full"}

// printDecision prints the rules' decision on a command as JSON. It runs nothing.
func printDecision(ctx context.Context, p cli.Process, mode string, files, argv []string) error {
	set, err := readRules(ctx, files)
	if err != nil {
		fmt.Fprintf(p.Stderr, "agent-ci sandbox: the rules cannot be used:\n%v\n", err)
		return cli.Exit(cli.ExitInvalid, nil)
	}
	return plainjson.Write(p.Stdout, commandPolicy(mode, set).Decide(newRequest(argv)))
}

// newRequest returns the request for a command. A single word that contains spaces is a script.
func newRequest(words []string) policy.Request {
	dir, _ := os.Getwd() // on an error, relative paths are not judged
	if len(words) == 1 && strings.ContainsAny(words[0], " \t\n") {
		return policy.Request{Script: words[0], Dir: dir}
	}
	return policy.Request{Argv: words, Dir: dir}
}

// commandPolicy returns the policy for commands in a sandbox mode, as if every confinement layer worked. The
// current folder is the workspace.
func commandPolicy(mode string, set *rules.Set) policy.Commands {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd() // on an error no path is in the workspace
	isConfined, level := true, sandbox.LevelFull
	if grants.Mode(mode) == grants.DangerFullAccess {
		isConfined, level = false, sandbox.LevelNone
	}
	o := sandbox.Options{Folders: grants.Folders{Mode: cmp.Or(grants.Mode(mode), grants.WorkspaceWrite), Workspace: dir, Home: home}}
	return policy.Commands{Rules: set, Sandboxed: isConfined, Home: home, Writable: o.WritableAt(level)}
}

// readRules reads the named files of rules. Without names it reads the repository's rules, if they exist.
func readRules(ctx context.Context, names []string) (*rules.Set, error) {
	optional := len(names) == 0
	if optional {
		names = []string{repositoryRules}
	}
	var files []rules.File
	for _, name := range names {
		data, err := boundedfile.Read(ctx, name, config.MaxSize)
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
