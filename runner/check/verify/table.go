package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Baseline runs the checks on the base commit, to recognise earlier failures. It also takes the
// snapshot of the work tree before the agent.
func (c Checks) Baseline(ctx context.Context) (transcript.Verify, error) {
	table := transcript.Verify{Passed: true}
	if err := c.Workspace.TakeSnapshot(ctx); err != nil {
		return table, err
	}
	if len(c.Job.Verify) == 0 {
		return table, nil
	}
	if err := c.Workspace.CopyUntracked(ctx); err != nil {
		return table, err
	}
	base := c.Workspace.Base()
	applies, err := c.applyTo(nil) // most changes do not need the checks with when; runPostponedBaseline runs them if one does
	if err != nil {
		return table, err
	}
	results, err := c.runOnBase(ctx, c.newSuite(0, base, base.Tree), applies)
	if err != nil {
		return table, err
	}
	for i, r := range results {
		row := c.newRow(i)
		if err := c.showBaseResult(ctx, &row, i, r); err != nil {
			return table, err
		}
		table.Rows = append(table.Rows, row)
	}
	return table, c.Record.Append(table)
}

// VerifyChange runs the checks on a change and records the table. It adds postponed base results to before.
func (c Checks) VerifyChange(ctx context.Context, attempt int, change *gitops.ChangeSet, before []transcript.VerifyRow) (transcript.Verify, error) {
	applies, err := c.applyTo(changeset.Paths(change.Files))
	if err != nil {
		return transcript.Verify{}, err
	}
	if err := c.runPostponedBaseline(ctx, attempt, change.Base, applies, before); err != nil {
		return transcript.Verify{}, err
	}
	results, err := c.runOn(ctx, c.newSuite(attempt, change.Base, change.Tree), applies)
	if err != nil {
		return transcript.Verify{}, err
	}
	table := transcript.Verify{Attempt: attempt, Passed: true}
	for i, row := range before {
		if err := c.showChangeResult(ctx, &row, i, results[i], change); err != nil {
			return table, err
		}
		row.After = results[i].state
		row.Passed = Passes(row)
		table.Passed = table.Passed && row.Passed
		row.Proof, row.ProofMore, row.OldTests, row.OldTestsUnknown = nil, 0, nil, ""
		table.Rows = append(table.Rows, row)
	}
	if err := c.prove(ctx, attempt, change, &table); err != nil {
		return transcript.Verify{}, err
	}
	return table, c.Record.Append(table)
}

// VerifyOnNewBase runs the checks on a change that was moved to another base. If some fail, it runs
// them on the new base, which may itself be red, and then on the change again to compare. It
// returns the latest table, even with an error.
func (c Checks) VerifyOnNewBase(ctx context.Context, table transcript.Verify, change *gitops.ChangeSet) (transcript.Verify, error) {
	attempt := table.Attempt + 1
	c.onOtherBase = true
	rows := slices.Clone(table.Rows)
	for i := range rows { // the rows may lack tests that failed on the old base
		rows[i].BeforePartial = rows[i].BeforePartial || rows[i].Before != "green"
	}
	onNewBase, err := c.VerifyChange(ctx, attempt, change, rows)
	if err != nil {
		return table, err
	}
	if onNewBase.Passed {
		return onNewBase, nil
	}
	applies, err := c.applyTo(changeset.Paths(change.Files))
	if err != nil {
		return onNewBase, err
	}
	baseSuite := c.newSuite(attempt+1, change.Base, change.Base.Tree)
	baseSuite.why = lateBaselineReason
	results, err := c.runOn(ctx, baseSuite, applies)
	if err != nil {
		return onNewBase, err
	}
	before := slices.Clone(onNewBase.Rows)
	for i := range before {
		if err := c.showBaseResult(ctx, &before[i], i, results[i]); err != nil {
			return onNewBase, err
		}
	}
	c.onOtherBase = false // the rows now have the new base's results
	compared, err := c.VerifyChange(ctx, attempt+2, change, before)
	if err != nil {
		return onNewBase, err
	}
	return compared, nil
}

// How many bytes of a red check's log the agent gets, from both ends. It can read the whole log.
const (
	headToAgent = 2 << 10
	tailToAgent = 6 << 10
)

// DescribeRed describes the red checks to the agent. remark is added to the introduction.
func (c Checks) DescribeRed(table transcript.Verify, remark string) (string, error) {
	var s strings.Builder
	s.WriteString("The runner checked your change on a fresh copy, and it does not pass yet. Mend the cause, then end again with your summary. " + remark + "\n")
	for _, row := range table.Rows {
		if row.Passed {
			continue
		}
		fmt.Fprintf(&s, "\n## %s: %s (before your change: %s)\ncommand: %s\n%s",
			row.Name, describeState(row.After), cmp.Or(row.Before, "not run"), row.Run, describeTests(row))
		for _, log := range logsToAgent(row) {
			shown, err := c.Record.HeadAndTail(log, headToAgent, tailToAgent)
			if err != nil {
				return "", fmt.Errorf("read log of %s: %w", row.Name, err)
			}
			fmt.Fprintf(&s, "output, whole in %s:\n%s\n", c.Record.Join(log), shown)
			if advice := networkAdvice("policy.network", c.Job.Policy.Network, row.Run, shown); advice != "" {
				s.WriteString(advice + "\n")
			}
		}
	}
	return s.String(), nil
}

// logsToAgent returns the logs of a red check for the agent: the deciding run's, and that of the
// first other run with a failure of its own.
func logsToAgent(row transcript.VerifyRow) []string {
	logs := []string{row.Log}
	for _, t := range row.Failing {
		if len(t.FailingRuns) == 0 || t.FailingRuns[0] > len(row.Runs) {
			continue
		}
		if log := row.Runs[t.FailingRuns[0]-1].Log; log != row.Log {
			return append(logs, log)
		}
	}
	return logs
}
