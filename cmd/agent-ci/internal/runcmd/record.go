package runcmd

import (
	"fmt"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/runs"
	"github.com/agent-ci/agent-ci/runner/replay/history"
)

// runOrLast permits one run, or none with --last.
var runOrLast = cli.Operands{Most: 1, Problem: "it takes one run directory, the id of a run, or --last"}

// runDirectoryOrLast returns the directory of the named run, or of the newest run with last.
func runDirectoryOrLast(p cli.Process, names []string, last bool) (string, error) {
	switch {
	case len(names) == 0 && !last:
		return "", cli.Misuse("%s", runOrLast.Problem)
	case len(names) > 0 && last:
		return "", cli.Misuse("--last and a run directory exclude each other")
	case len(names) > 0:
		return runDirectory(p, names[0]), nil
	}
	return newestRun(p)
}

// newestRun returns the directory of this user's newest run.
func newestRun(p cli.Process) (string, error) {
	machine := userRuns(p)
	list, err := machine.List()
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		folder, _ := machine.Path() // no error: List used the same path
		return "", fmt.Errorf("there is no run yet in %s; name a run directory", folder)
	}
	return list[0].Directory, nil
}

// userRuns returns the runs.Store that finds this user's runs on this machine.
func userRuns(p cli.Process) runs.Store {
	return runs.Store{Getenv: p.Variable, Resumable: func(dir *record.Directory) error { return history.Resumable(dir, "") }}
}

// runDirectory returns the directory of a run, given its path or id.
func runDirectory(p cli.Process, name string) string { return userRuns(p).Find(name) }
