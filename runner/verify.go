package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// setUp runs the job's setup commands in the checkout, before the baseline and
// the first turn. What they change of tracked files would be taken for the
// agent's work, so that it ends the run.
func (r *run) setUp(ctx context.Context) error {
	if len(r.job.Setup) == 0 {
		return nil
	}
	if err := r.takeSnapshot(ctx); err != nil { // what a setup that fails leaves can be taken back
		return err
	}
	for i, step := range r.job.Setup {
		if err := r.setUpStep(ctx, i, step); err != nil {
			return err
		}
	}
	if err := r.unchangedBy(ctx, "setup"); err != nil {
		return err
	}
	return r.hideMore(ctx)
}

func (r *run) setUpStep(ctx context.Context, i int, step job.SetupStep) error {
	name := step.Name
	if name == "" {
		name = fmt.Sprintf("setup %d", i+1)
	}
	s := confine.Script{
		Name: name, Run: step.Run, Dir: r.workDir(), Timeout: time.Duration(step.Timeout), Log: record.LogName("setup", i+1, name),
		Place: confine.Place{Scratch: confine.SetupScratch, Network: step.Network, Key: fmt.Sprintf("setup[%d].network", i)},
	}
	took, err := r.boxes.RunScript(ctx, s)
	if err != nil {
		return err
	}
	event := transcript.Setup{Name: name, Run: step.Run, ExitCode: took.ExitCode, Seconds: took.Seconds, Log: s.Log}
	if err := r.rec.Append(transcript.TypeSetup, event); err != nil {
		return err
	}
	if took.Color() != "green" {
		return outcome.Stopf(outcome.InvalidInput, "setup_failed",
			"The setup command %q ended as %s; see %s.", name, took.Color(), r.rec.Join(s.Log))
	}
	return nil
}

// takeBaseline runs the verify commands on the base commit, so that red can be
// told from red before, and remembers the checkout as the agent gets it.
func (r *run) takeBaseline(ctx context.Context) error {
	if err := r.takeSnapshot(ctx); err != nil {
		return err
	}
	r.table = transcript.Verify{Passed: true}
	if len(r.job.Verify) == 0 {
		return nil
	}
	if err := r.keepUntracked(ctx); err != nil {
		return err
	}
	results, err := r.verifyTree(ctx, 0, r.base.Tree)
	if err != nil {
		return err
	}
	if !r.verifiesClean() {
		if err := r.afterBaselineInCheckout(ctx); err != nil {
			return err
		}
	}
	for i, check := range r.job.Verify {
		r.baseline = append(r.baseline, transcript.VerifyRow{
			Name: check.Name, Run: check.Run, Must: check.Must, Before: results[i].Color(),
			Seconds: results[i].Seconds, Log: verifyLog(0, i, check),
		})
	}
	r.table = transcript.Verify{Rows: r.baseline, Passed: true}
	return r.rec.Append(transcript.TypeVerify, r.table)
}

// verifiesClean says that checks run on a fresh tree, not in the checkout.
func (r *run) verifiesClean() bool { return r.job.VerifyIn == "clean" }

// afterBaselineInCheckout counts the files that the checks made as not the
// agent's.
func (r *run) afterBaselineInCheckout(ctx context.Context) error {
	if err := r.unchangedBy(ctx, "verify"); err != nil {
		return err
	}
	return r.takeSnapshot(ctx)
}

func verifyLog(attempt, i int, check job.VerifyCheck) string {
	return record.LogName(fmt.Sprintf("verify-%d", attempt), i+1, check.Name)
}

// verifyTree runs every verify command on a tree.
func (r *run) verifyTree(ctx context.Context, attempt int, tree gitops.Tree) (results []confine.Ran, err error) {
	if err := r.gitUnchanged(ctx); err != nil {
		return nil, err
	}
	for i := range r.job.Verify {
		took, err := r.check(ctx, attempt, i, tree)
		if err != nil {
			return nil, err
		}
		results = append(results, took)
	}
	return results, nil
}

// check runs one verify command on a tree. Files, /tmp and home folder are its
// own: what it runs of the agent's could else change what the next one judges.
func (r *run) check(ctx context.Context, attempt, i int, tree gitops.Tree) (took confine.Ran, err error) {
	check := r.job.Verify[i]
	s := confine.Script{
		Name: check.Name, Run: check.Run, Dir: r.workDir(), Timeout: time.Duration(check.Timeout), Log: verifyLog(attempt, i, check),
		Place: confine.Place{Scratch: fmt.Sprintf("verify-%d", attempt)},
	}
	if r.verifiesClean() {
		s.Place.Root = r.rec.Join(record.StateFolder, s.Place.Scratch)
		s.Dir = filepath.Join(s.Place.Root, filepath.FromSlash(r.job.Repository.Path))
	}
	defer func() { err = errors.Join(err, r.removeCheck(s.Place)) }()
	if err := r.removeCheck(s.Place); err != nil { // of a run that was killed in it
		return confine.Ran{}, err
	}
	if r.verifiesClean() {
		if err := r.checkout.Materialise(ctx, gitops.MaterialiseOptions{
			Dir: s.Place.Root, Tree: tree, Base: r.base, Untracked: r.rec.Join(keptUntracked),
		}); err != nil {
			return confine.Ran{}, fmt.Errorf("make a fresh tree to verify: %w", err)
		}
		s.Place.Lent = r.checkout.LentObjects(s.Place.Root)
	}
	return r.boxes.RunScript(ctx, s)
}

// removeCheck removes what a check had of its own. What stays would be found by
// the next check, so that it ends the run.
func (r *run) removeCheck(p confine.Place) error {
	if err := r.boxes.Remove(p); err != nil {
		return fmt.Errorf("remove what a check left: %w", err)
	}
	return nil
}

// verify judges the change set and records the table.
func (r *run) verify(ctx context.Context, attempt int) error {
	results, err := r.verifyTree(ctx, attempt, r.changes.Tree)
	if err != nil {
		return err
	}
	if err := r.unchangedByVerify(ctx); err != nil {
		return err
	}
	table := transcript.Verify{Attempt: attempt, Passed: true}
	for i, check := range r.job.Verify {
		row := r.baseline[i]
		row.After, row.Seconds, row.Log = results[i].Color(), results[i].Seconds, verifyLog(attempt, i, check)
		row.Passed = passes(row)
		table.Passed = table.Passed && row.Passed
		table.Rows = append(table.Rows, row)
	}
	r.table = table
	return r.rec.Append(transcript.TypeVerify, table)
}

// passes says whether a check came out as its job demands.
func passes(row transcript.VerifyRow) bool {
	return row.After == "green" || row.Must == "no_worse" && row.Before != "green"
}

// unchangedByVerify makes sure that checks which ran in the checkout did not
// change what they judged.
func (r *run) unchangedByVerify(ctx context.Context) error {
	if r.verifiesClean() {
		return nil
	}
	if err := r.gitUnchanged(ctx); err != nil {
		return err
	}
	now, err := r.checkout.Changes(ctx, r.snapshot)
	if err != nil {
		return fmt.Errorf("look for what the verify commands changed: %w", err)
	}
	if now.Tree == r.changes.Tree {
		return nil
	}
	r.changes = now // so that it can be taken out again
	return outcome.Stopf(outcome.InvalidInput, "verify_changed_files",
		"The verify commands changed the checkout, so that it is no longer the agent's change alone; let git ignore what they write, or use verify_in: clean.")
}

// How many bytes of a red command's log the agent gets, of its beginning and of
// its end; the whole lies where it can read it.
const (
	headToAgent = 2 << 10
	tailToAgent = 6 << 10
)

// giveBack tells the agent which rows are red.
func (r *run) giveBack() error {
	var s strings.Builder
	where := "on a fresh copy"
	if !r.verifiesClean() {
		where = "in the checkout"
	}
	s.WriteString("The runner checked your change " + where + ", and it does not pass yet. Mend the cause, then end again with your summary. " + stoppedWords + "\n")
	for _, row := range r.table.Rows {
		if row.Passed {
			continue
		}
		shown, err := r.rec.Ends(row.Log, headToAgent, tailToAgent)
		if err != nil {
			return fmt.Errorf("read log of %s: %w", row.Name, err)
		}
		fmt.Fprintf(&s, "\n## %s: %s (before your change: %s)\ncommand: %s\noutput, whole in %s:\n%s\n",
			row.Name, row.After, row.Before, row.Run, r.rec.Join(row.Log), shown)
	}
	return r.conversation.Tell(s.String())
}

// judgeLeftOut refuses a run whose work is all such that it cannot be part of a
// change: that is not a run without work.
func (r *run) judgeLeftOut() error {
	if r.changes == nil || len(r.changes.Problems) == 0 {
		return nil
	}
	return r.judgePaths()
}

// judgeChanges refuses a change set that the job's policy or limits forbid.
func (r *run) judgeChanges(ctx context.Context) error {
	if err := r.judgeSize(); err != nil {
		return err
	}
	leaked, err := r.leakedSecrets(ctx)
	if err != nil {
		return err
	}
	if len(leaked) > 0 {
		return outcome.Stopf(outcome.PolicyViolation, "secret",
			"The change holds a secret (%s) and is not published; rotate it if others could see the checkout.", strings.Join(leaked, ", "))
	}
	return r.judgePaths()
}

// judgeSize refuses a change that is larger than the job allows.
func (r *run) judgeSize() error {
	if r.changes.Empty() {
		return nil
	}
	lines := r.changes.Insertions + r.changes.Deletions
	switch l := r.job.Limits; {
	case l.DiffFiles > 0 && len(r.changes.Files) > l.DiffFiles:
		return outcome.Stopf(outcome.BudgetExceeded, "diff_files",
			"The change touches %d files, limits.diff_files allows %d; raise it or give a smaller task.", len(r.changes.Files), l.DiffFiles)
	case l.DiffLines > 0 && lines > l.DiffLines:
		return outcome.Stopf(outcome.BudgetExceeded, "diff_lines",
			"The change has %d lines, limits.diff_lines allows %d; raise it or give a smaller task.", lines, l.DiffLines)
	}
	return nil
}
