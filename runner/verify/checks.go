package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Checks are the setup and verify commands of a job, and what they run in.
type Checks struct {
	Record    *record.Record
	Sandboxes *confine.Sandboxes
	Workspace *workspace.Workspace
	Job       *job.Job
}

// Clean says that checks run on a fresh tree, not in the checkout.
func (c Checks) Clean() bool { return c.Job.VerifyIn == "clean" }

// NeedUntracked says that checks need what is not tracked before the first turn.
func (c Checks) NeedUntracked() bool { return len(c.Job.Verify) > 0 && c.Clean() }

// runOn runs every check on a tree of a base.
func (c Checks) runOn(ctx context.Context, attempt int, base gitops.Base, tree gitops.Tree) (results []confine.Ran, err error) {
	if err := c.Workspace.GitUnchanged(ctx); err != nil {
		return nil, err
	}
	for i := range c.Job.Verify {
		ran, err := c.check(ctx, c.script(attempt, i), base, tree)
		if err != nil {
			return nil, err
		}
		results = append(results, ran)
	}
	return results, nil
}

// script is a check as it runs in an attempt.
func (c Checks) script(attempt, i int) confine.Script {
	check := c.Job.Verify[i]
	script := confine.Script{
		Name: check.Name, Run: check.Run, Dir: c.Workspace.WorkDir(c.Job.Repository.Path), Timeout: time.Duration(check.Timeout), Log: log(attempt, i, check),
		Place: confine.Place{Scratch: fmt.Sprintf("verify-%d", attempt)},
	}
	if c.Clean() {
		script.Place.Root = c.Record.Join(record.StateFolder, script.Place.Scratch)
		script.Dir = filepath.Join(script.Place.Root, filepath.FromSlash(c.Job.Repository.Path))
	}
	return script
}

func log(attempt, i int, check job.VerifyCheck) string {
	return record.LogName(fmt.Sprintf("verify-%d", attempt), i+1, check.Name)
}

// check runs a check on a tree. Files, /tmp and home folder are its own: what it
// runs of the agent's could else change what the next one judges.
func (c Checks) check(ctx context.Context, script confine.Script, base gitops.Base, tree gitops.Tree) (ran confine.Ran, err error) {
	defer func() { err = errors.Join(err, c.remove(script.Place)) }()
	if err := c.remove(script.Place); err != nil { // of a run that was killed in it
		return confine.Ran{}, err
	}
	if dir := script.Place.Root; c.Clean() {
		checkout := c.Workspace.Checkout()
		if err := checkout.Materialise(ctx, gitops.MaterialiseOptions{Dir: dir, Tree: tree, Base: base, Untracked: c.Workspace.UntrackedDir()}); err != nil {
			return confine.Ran{}, fmt.Errorf("make a fresh tree to verify: %w", err)
		}
		script.Place.Lent = checkout.LentObjects(dir)
	}
	return c.Sandboxes.RunScript(ctx, script)
}

// remove removes what a check had of its own. What stays would be found by the next
// check, so that it ends the run.
func (c Checks) remove(p confine.Place) error {
	if err := c.Sandboxes.Remove(p); err != nil {
		return fmt.Errorf("remove what a check left: %w", err)
	}
	return nil
}
