package repair

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Case is a pull request with its failed checks.
type Case struct {
	Pull *forge.PullRequest
	Head string // the commit that the checks ran on

	Red               []Red // that the pull request has to answer for
	OnBase            []Red // red on the base too
	ConflictsWithBase bool  // the base moved into conflict with the change

	runs map[int64]*forge.WorkflowRun // that were asked for; nil for one that is not there
}

// Red is a red check on the head.
type Red struct {
	forge.Check
	Infrastructure string // why the failure looks like one of the runner or network; empty if it does not
	Failed         []string
	Log            string // of the job, cut; empty without one
	NoLog          string // why not
}

// infrastructureEndings maps red conclusions to the reason why they suggest an infrastructure failure; "" if they
// do not.
var infrastructureEndings = map[string]string{
	"failure": "", "timed_out": "it timed out", "startup_failure": "it could not be started", "cancelled": "it was cancelled",
}

// maxRed is how many red checks are looked into; the rest is named alone.
const maxRed = 10

// readCase reads the red checks on a pull request's head. Checks red on the base too are listed
// separately: the change did not cause them.
func readCase(ctx context.Context, in forge.Repository, pull *forge.PullRequest, head *forge.Commit) (*Case, error) {
	c := &Case{Pull: pull, Head: head.SHA, ConflictsWithBase: pull.Mergeable == forge.MergeableDirty, runs: map[int64]*forge.WorkflowRun{}}
	checks, err := checksOf(ctx, in, head.SHA)
	if err != nil {
		return nil, err
	}
	var red []forge.Check
	for _, check := range checks {
		if isRed(check) {
			red = append(red, check)
		}
	}
	if len(red) == 0 {
		return c, nil
	}
	base, err := baseOf(ctx, in, pull.Base, head.Parents[0])
	if err != nil {
		return nil, err
	}
	for _, check := range red {
		onBase, err := c.redOnBase(ctx, in, check, base)
		if err != nil {
			return nil, err
		}
		if onBase {
			c.OnBase = append(c.OnBase, Red{Check: check})
			continue
		}
		c.Red = append(c.Red, Red{Check: check, Infrastructure: infrastructureEndings[check.Conclusion]})
	}
	return c, c.readLogs(ctx, in)
}

func isRed(c forge.Check) bool {
	_, red := infrastructureEndings[c.Conclusion]
	return red && c.Status == "completed"
}

func checksOf(ctx context.Context, in forge.Repository, sha string) ([]forge.Check, error) {
	checks, err := in.Checks(ctx, sha)
	return checks, intake.ForgeFailure(fmt.Sprintf("The checks of commit %s cannot be read", gitops.Short(sha)), err)
}

// commit is one of the base, with its checks once they were asked for.
type commit struct {
	sha    string
	checks []forge.Check
	read   bool
}

// baseOf returns the base commits to compare with: the newest and, for checks still running there,
// the one under the change.
func baseOf(ctx context.Context, in forge.Repository, base, madeOn string) ([]commit, error) {
	tip, err := intake.LookUpBranch(ctx, in, base)
	if err != nil || tip == nil || tip.SHA == madeOn {
		return []commit{{sha: madeOn}}, err
	}
	return []commit{{sha: tip.SHA}, {sha: madeOn}}, nil
}

// redOnBase reports whether a red check failed on the base too.
func (c *Case) redOnBase(ctx context.Context, in forge.Repository, red forge.Check, base []commit) (bool, error) {
	for i := range base {
		on := &base[i]
		if !on.read {
			var err error
			if on.checks, err = checksOf(ctx, in, on.sha); err != nil {
				return false, err
			}
			on.read = true
		}
		for _, check := range on.checks {
			if check.App != red.App || check.Name != red.Name || check.Status != "completed" || !decides(check) {
				continue
			}
			same, err := c.ofOneWorkflow(ctx, in, red, check)
			if err != nil {
				return false, err
			}
			if same {
				return isRed(check), nil
			}
		}
	}
	return false, nil
}

// ofOneWorkflow tells jobs of one name in two workflows apart.
func (c *Case) ofOneWorkflow(ctx context.Context, in forge.Repository, checks ...forge.Check) (bool, error) {
	var path string
	for _, check := range checks {
		run, err := c.workflowRun(ctx, in, check.RunID)
		switch {
		case err != nil:
			return false, err
		case run == nil: // it is no job, or the run is not kept any more: the name has to do
			return true, nil
		case path != "" && path != run.Path:
			return false, nil
		}
		path = run.Path
	}
	return true, nil
}

// decides reports whether a base check says anything about the code. Cancelled or skipped ones do
// not.
func decides(c forge.Check) bool {
	return c.Conclusion == "success" || isRed(c) && infrastructureEndings[c.Conclusion] == "" || c.Conclusion == "timed_out"
}
