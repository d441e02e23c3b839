package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// runOn runs the needed checks on a tree, one after the other.
func (c Checks) runOn(ctx context.Context, s suite, needed []bool) ([]result, error) {
	results := make([]result, len(needed))
	for i := range results {
		if !needed[i] {
			results[i].notRun = transcript.NotConcerned
			continue
		}
		var err error
		if results[i], err = c.runWithReruns(ctx, s, i); err != nil {
			return results, err
		}
	}
	return results, nil
}

// AppliesTo reports whether a check's `when` is empty or matches one of the changed paths.
func AppliesTo(check job.VerifyCheck, paths []string) (bool, error) {
	if len(check.When) == 0 {
		return true, nil
	}
	for _, path := range paths {
		if fits, err := policy.MatchesPattern(check.When, path); err != nil || fits {
			return fits, err
		}
	}
	return false, nil
}

// applyTo reports for each check whether it applies to changed paths. Without paths, only checks without when do.
func (c Checks) applyTo(paths []string) ([]bool, error) {
	applies := make([]bool, len(c.Job.Verify))
	for i, check := range c.Job.Verify {
		var err error
		if applies[i], err = AppliesTo(check, paths); err != nil {
			return nil, fmt.Errorf("verify[%d].when: %w", i, err)
		}
	}
	return applies, nil
}

// runPostponedBaseline runs the postponed baselines that a change needs, and adds the results to rows.
func (c Checks) runPostponedBaseline(ctx context.Context, attempt int, base gitops.Base, applies []bool, rows []transcript.VerifyRow) error {
	isNeeded := make([]bool, len(rows))
	for i, row := range rows {
		isNeeded[i] = applies[i] && row.Before == "" && row.NotRun == transcript.NotConcerned
	}
	if !slices.Contains(isNeeded, true) {
		return nil
	}
	s := c.newSuite(attempt, base, base.Tree)
	s.kind, s.why = fmt.Sprintf("base-%d", attempt), lateBaselineReason
	results, err := c.runOnBase(ctx, s, isNeeded)
	if err != nil {
		return err
	}
	for i, r := range results {
		if !isNeeded[i] {
			continue
		}
		if err := c.showBaseResult(ctx, &rows[i], i, r); err != nil {
			return err
		}
	}
	return nil
}

// lateBaselineReason says where the checks of a late baseline run.
const lateBaselineReason = "on the base"
