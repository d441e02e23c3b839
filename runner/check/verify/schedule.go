package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// knownResult returns the result of a check that need not run. ok is false for a check that must run.
type knownResult func(i int) (r result, ok bool)

// runOn runs the checks on a tree, one after the other. It skips checks with a known result.
func (c Checks) runOn(ctx context.Context, s suite, known knownResult) ([]result, error) {
	results := make([]result, len(c.Job.Verify))
	for i := range results {
		r, ok := known(i)
		if !ok {
			var err error
			if r, err = c.runWithReruns(ctx, s, i); err != nil {
				return results, err
			}
		}
		results[i] = r
	}
	return results, nil
}

// AppliesTo reports whether a check's `when` matches one of the changed paths. A check without
// `when` always applies.
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

// appliesToChange reports for each check whether it applies to the change.
func (c Checks) appliesToChange(change *gitops.ChangeSet) ([]bool, error) {
	applies, paths := make([]bool, len(c.Job.Verify)), changeset.Paths(change.Files)
	for i, check := range c.Job.Verify {
		var err error
		if applies[i], err = AppliesTo(check, paths); err != nil {
			return nil, fmt.Errorf("verify[%d].when: %w", i, err)
		}
	}
	return applies, nil
}

// skipOthers returns a knownResult that skips the checks that do not apply.
func skipOthers(applies []bool) knownResult {
	return func(i int) (result, bool) { return result{notRun: transcript.NotConcerned}, !applies[i] }
}

// skipConditional is a knownResult that skips checks with `when` in the baseline, because most changes do not need
// them. If a change does, runPostponedBaseline runs them later.
func (c Checks) skipConditional(i int) (result, bool) {
	return result{notRun: transcript.NotConcerned}, len(c.Job.Verify[i].When) > 0
}

// runPostponedBaseline runs the postponed baselines that a change needs, and adds the results to
// rows.
func (c Checks) runPostponedBaseline(ctx context.Context, attempt int, base gitops.Base, applies []bool, rows []transcript.VerifyRow) error {
	isNeeded := make([]bool, len(rows))
	for i, row := range rows {
		isPostponed := row.Before == "" && row.NotRun == transcript.NotConcerned
		isNeeded[i] = applies[i] && isPostponed
	}
	if !slices.Contains(isNeeded, true) {
		return nil
	}
	s := suiteOf(attempt, base, base.Tree)
	s.kind, s.serviceNotBlamed, s.why = fmt.Sprintf("base-%d", attempt), true, lateBaselineReason
	knownResult := func(i int) (r result, isKnown bool) { // checks that are not needed do not run
		return result{state: rows[i].Before, notRun: rows[i].NotRun}, !isNeeded[i]
	}
	results, err := c.runOnBase(ctx, s, knownResult)
	if err != nil {
		return err
	}
	for i, r := range results {
		if !isNeeded[i] {
			continue
		}
		rows[i].Before, rows[i].CachedFrom = r.state, r.fromRun
		if err := c.showBaseResult(ctx, &rows[i], i, r); err != nil {
			return err
		}
	}
	return nil
}

// lateBaselineReason says where the checks of a late baseline run.
const lateBaselineReason = "on the base"
