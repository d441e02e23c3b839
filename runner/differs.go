package runner

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// differs notes a point in which a replay is not as the record, if it is not.
func (f *Replayed) differs(what, recorded, replayed string) {
	if recorded != replayed {
		f.Differences = append(f.Differences, Difference{What: what, Recorded: recorded, Replayed: replayed})
	}
}

// repeatable are the ends that a run comes to again by the same answers, beside
// those that its work alone decides. Where no reason stands, each is.
var repeatable = map[outcome.Outcome][]string{
	outcome.NoChanges:       {"nothing_to_do", "answered", "only_protected"},
	outcome.NeedsInput:      nil,
	outcome.PolicyViolation: {"change", "secret"},
	outcome.BudgetExceeded:  {"turns", "tool_calls", "tokens", "cost", "diff_files", "diff_lines"},
	outcome.InvalidInput:    {"setup_failed", "setup_changed_files", "verify_changed_files"},
}

// workEnd is how the work of a recorded run ended, whatever became of it in
// publishing; empty where the run was stopped from outside.
func (p *past) workEnd() string {
	if p.finished == nil {
		return ""
	}
	end := outcome.Outcome(p.finished.Outcome)
	reasons, known := repeatable[end]
	switch {
	case known && (reasons == nil || slices.Contains(reasons, p.finished.Reason)):
		return p.finished.Outcome + "/" + p.finished.Reason
	case end == outcome.Changed:
		return string(end)
	case end == outcome.VerifyFailed:
		return string(outcome.VerifyFailed)
	case !slices.Contains([]outcome.Outcome{outcome.NoChanges, outcome.Conflict, outcome.ForgeFailed, outcome.Skipped}, end) || !p.hasChange():
		return ""
	case p.table != nil && !p.table.Passed:
		return string(outcome.VerifyFailed)
	}
	return string(outcome.Changed)
}

func (p *past) hasChange() bool { return p.change != nil && len(p.change.Files) > 0 }

// endInWords is an end as workEnd tells it.
func endInWords(stop *outcome.Stop) string {
	if stop.Outcome == outcome.Changed || stop.Outcome == outcome.VerifyFailed {
		return string(stop.Outcome)
	}
	return string(stop.Outcome) + "/" + stop.Reason
}

// compareEnd compares what a live replay came to with what the record says: the
// end, the checks and the tree.
func (p *replay) compareEnd(found *Replayed, stop *outcome.Stop) {
	past := p.recorded.past
	recorded := past.workEnd()
	if recorded == "" {
		return
	}
	found.differs("outcome", recorded, endInWords(stop))
	tree := string(p.run.base.Tree)
	if past.hasChange() {
		tree = past.change.TreeSHA
	}
	found.differs("tree", tree, found.Tree)
	p.compareChecks(found)
}

func (p *replay) compareChecks(found *Replayed) {
	var recorded []transcript.VerifyRow
	if table := p.recorded.past.table; table != nil {
		recorded = table.Rows
	}
	replayed := p.run.table.Rows
	for i := range max(len(recorded), len(replayed)) {
		was, is := "(not there)", "(not there)"
		var name string
		if i < len(replayed) {
			name, is = replayed[i].Name, checkInWords(replayed[i])
		}
		if i < len(recorded) {
			name, was = recorded[i].Name, checkInWords(recorded[i])
		}
		found.differs("check "+name, was, is)
	}
}

func checkInWords(row transcript.VerifyRow) string {
	after := row.After
	if after == "" {
		after = "not run"
	}
	return fmt.Sprintf("%s (%s): %s before, %s after, passed: %v", row.Name, row.Run, row.Before, after, row.Passed)
}

// checkRecord looks for what a record says and what does not follow from the rest
// of it: its chain, its result, its checks and its end.
func (p *replay) checkRecord(found *Replayed) {
	past := p.recorded.past
	if _, err := p.recorded.checkChain(); err != nil && !errors.Is(err, errUnfinished) {
		found.differs("transcript", "as it was written", err.Error())
	}
	p.checkRows(found)
	end := past.finished
	if end == nil {
		return
	}
	if end.Result != nil && p.recorded.dir.has(resultFile) {
		if err := p.recorded.dir.checkResult(end); err != nil {
			found.differs(resultFile, "as it was written", err.Error())
		}
	}
	follows := exitCodeOf(&outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason})
	found.differs("exit code", fmt.Sprint(end.ExitCode), fmt.Sprint(follows))
	found.differs("outcome", end.Outcome, string(past.follows()))
}

// follows is the outcome that a record's change and checks make of what it says
// of its end.
func (p *past) follows() outcome.Outcome {
	end := outcome.Outcome(p.finished.Outcome)
	worked := end == outcome.Changed || end == outcome.VerifyFailed
	without := slices.Contains(repeatable[outcome.NoChanges], p.finished.Reason)
	switch {
	case worked && !p.hasChange():
		return outcome.NoChanges
	case worked && p.table != nil && !p.table.Passed:
		return outcome.VerifyFailed
	case worked, end == outcome.NoChanges && without && p.hasChange():
		return outcome.Changed
	}
	return end
}

// checkRows compares the last table of a record with the checks of its job, and
// what passed with how each came out.
func (p *replay) checkRows(found *Replayed) {
	past := p.recorded.past
	if past.table == nil {
		return
	}
	passed := true
	for i, row := range past.table.Rows {
		is := row
		if i < len(past.job.Verify) {
			is.Name, is.Run, is.Must = past.job.Verify[i].Name, past.job.Verify[i].Run, past.job.Verify[i].Must
		}
		is.Passed = past.table.Attempt > 0 && passes(is)
		passed = passed && (is.Passed || past.table.Attempt == 0)
		found.differs("check "+row.Name, checkInWords(row), checkInWords(is))
	}
	found.differs("number of checks", fmt.Sprint(len(past.table.Rows)), fmt.Sprint(len(past.job.Verify)))
	found.differs("all checks pass", fmt.Sprint(past.table.Passed), fmt.Sprint(passed))
}
