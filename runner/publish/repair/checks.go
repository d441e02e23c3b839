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

	Red               []Red // red checks that the pull request caused
	OnBase            []Red // red on the base too
	ConflictsWithBase bool  // the base moved into conflict with the change

	runs map[int64]*forge.WorkflowRun // workflow runs read so far, by id; nil for a missing one
}

// Red is a red check on the head.
type Red struct {
	forge.Check
	Infrastructure string // why the runner or network seems to be the cause, or ""
	Failed         []string
	Log            string // excerpt of the job's log, or ""
	NoLog          string // why there is no log
}

// infrastructureEndings maps each red conclusion to why it suggests an infrastructure failure, or to "".
var infrastructureEndings = map[string]string{
	"failure": "", "timed_out": "it timed out", "startup_failure": "it could not be started", "cancelled": "it was cancelled",
}

// maxRed is how many red checks are examined. Further ones are only counted.
const maxRed = 10

// readCase reads the red checks on the pull request's head. Checks that are red on the base too are listed separately, because the
// change did not cause them.
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

// isRed reports whether a check has completed and failed.
func isRed(c forge.Check) bool {
	_, red := infrastructureEndings[c.Conclusion]
	return red && c.Status == "completed"
}

func checksOf(ctx context.Context, in forge.Repository, sha string) ([]forge.Check, error) {
	checks, err := in.Checks(ctx, sha)
	return checks, intake.ForgeFailure(fmt.Sprintf("The checks of commit %s cannot be read", gitops.Short(sha)), err)
}

// commit is a commit of the base branch. Its checks are read when needed.
type commit struct {
	sha    string
	checks []forge.Check
	read   bool
}

// baseOf returns the base commits to compare with: first the newest. Its checks may still be running, so the one that the change was
// made on follows.
func baseOf(ctx context.Context, in forge.Repository, base, madeOn string) ([]commit, error) {
	tip, err := intake.LookUpBranch(ctx, in, base)
	if err != nil || tip == nil || tip.SHA == madeOn {
		return []commit{{sha: madeOn}}, err
	}
	return []commit{{sha: tip.SHA}, {sha: madeOn}}, nil
}

// redOnBase reports whether the same check is red on the base. The first base commit with a conclusive result decides.
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

// ofOneWorkflow reports whether checks of one name belong to the same workflow. Two workflows may have jobs of one name.
func (c *Case) ofOneWorkflow(ctx context.Context, in forge.Repository, checks ...forge.Check) (bool, error) {
	var path string
	for _, check := range checks {
		run, err := c.workflowRun(ctx, in, check.RunID)
		switch {
		case err != nil:
			return false, err
		case run == nil: // not a workflow's job, or the run was deleted: compare names only
			return true, nil
		case path != "" && path != run.Path:
			return false, nil
		}
		path = run.Path
	}
	return true, nil
}

// decides reports whether a result on the base says anything about the code. Cancelled and skipped checks do not.
func decides(c forge.Check) bool {
	return c.Conclusion == "success" || isRed(c) && infrastructureEndings[c.Conclusion] == "" || c.Conclusion == "timed_out"
}
