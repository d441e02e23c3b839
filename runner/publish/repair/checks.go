package repair

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Case is a pull request with its failed checks.
type Case struct {
	Pull *forge.PullRequest
	Head string // the commit that the checks ran on

	Red               []Red // red checks that the pull request caused
	OnBase            []Red // red on the base too
	ConflictsWithBase bool  // the base moved into conflict with the change

	repository forge.Repository
	runs       map[int64]*forge.WorkflowRun // workflow runs read so far, by id; nil for a missing one
	checks     map[string][]forge.Check     // checks read so far, by commit
}

// Red is a red check on the head.
type Red struct {
	forge.Check
	Infrastructure string // why the runner or network seems to be the cause, or ""
	FailedSteps    []string
	Log            string // excerpt of the job's log, or ""
	NoLogReason    string // why there is no log
}

// reasonByRedConclusion maps each red conclusion to why it suggests an infrastructure failure, or to "".
var reasonByRedConclusion = map[string]string{
	"failure": "", "timed_out": "it timed out", "startup_failure": "it could not be started", "cancelled": "it was cancelled",
}

// maxRed is how many red checks are examined. Further ones are only counted.
const maxRed = 10

// readCase reads the red checks on the pull request's head, with their logs. Checks that are red on the base too
// are listed separately, because the change did not cause them. head is a run's commit, so its only parent is the
// base that the change was made on.
func readCase(ctx context.Context, repository forge.Repository, pull *forge.PullRequest, head *forge.Commit) (*Case, error) {
	c := &Case{Pull: pull, Head: head.SHA, ConflictsWithBase: pull.Mergeable == forge.MergeableDirty, repository: repository, runs: map[int64]*forge.WorkflowRun{}, checks: map[string][]forge.Check{}}
	checks, err := c.readChecks(ctx, head.SHA)
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
	base, err := c.baseCommits(ctx, head.Parents[0])
	if err != nil {
		return nil, err
	}
	for _, check := range red {
		onBase, err := c.isRedOnBase(ctx, check, base)
		if err != nil {
			return nil, err
		}
		if onBase {
			c.OnBase = append(c.OnBase, Red{Check: check})
			continue
		}
		c.Red = append(c.Red, Red{Check: check, Infrastructure: reasonByRedConclusion[check.Conclusion]})
	}
	return c, c.readLogs(ctx)
}

// isRed reports whether a check has completed and failed.
func isRed(c forge.Check) bool {
	_, red := reasonByRedConclusion[c.Conclusion]
	return red && c.Status == "completed"
}

// readChecks returns the checks of a commit. It reads them once.
func (c *Case) readChecks(ctx context.Context, sha string) ([]forge.Check, error) {
	if checks, known := c.checks[sha]; known {
		return checks, nil
	}
	checks, err := c.repository.Checks(ctx, sha)
	c.checks[sha] = checks
	return checks, intake.ForgeFailure(fmt.Sprintf("The checks of commit %s cannot be read", clip.SHA(sha)), err)
}

// baseCommits returns the base commits to compare with. The newest comes first. Its checks may still be running,
// so madeOn follows, the commit that the change was made on.
func (c *Case) baseCommits(ctx context.Context, madeOn string) ([]string, error) {
	tip, err := intake.LookUpBranch(ctx, c.repository, c.Pull.Base)
	if err != nil {
		return nil, err
	}
	if tip == nil || tip.SHA == madeOn {
		return []string{madeOn}, nil
	}
	return []string{tip.SHA, madeOn}, nil
}

// isRedOnBase reports whether the same check is red on the base. The first commit in base with a conclusive result
// decides. Without such a result, the check counts as not red.
func (c *Case) isRedOnBase(ctx context.Context, red forge.Check, base []string) (bool, error) {
	for _, sha := range base {
		checks, err := c.readChecks(ctx, sha)
		if err != nil {
			return false, err
		}
		for _, check := range checks {
			hasSameName := check.App == red.App && check.Name == red.Name
			if !hasSameName || check.Status != "completed" || !isConclusive(check) {
				continue
			}
			same, err := c.sameWorkflow(ctx, red, check)
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

// sameWorkflow reports whether checks of one name belong to the same workflow. Two workflows may have jobs of
// one name. If the workflow of a check is unknown, the equal name decides, and the result is true.
func (c *Case) sameWorkflow(ctx context.Context, checks ...forge.Check) (bool, error) {
	var path string
	for _, check := range checks {
		run, err := c.workflowRun(ctx, check.RunID)
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

// isConclusive reports whether a result on the base says anything about the code. Cancelled and skipped
// checks do not.
func isConclusive(c forge.Check) bool {
	return c.Conclusion == "success" || isRed(c) && reasonByRedConclusion[c.Conclusion] == "" || c.Conclusion == "timed_out"
}
