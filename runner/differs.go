package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify"
)

// differs notes a point in which a replay is not as the record, if it is not.
func (f *Replayed) differs(what, recorded, replayed string) {
	if recorded != replayed {
		f.Differences = append(f.Differences, Difference{What: what, Recorded: recorded, Replayed: replayed})
	}
}

// withoutWork are the reasons of no_changes that mean that the work left nothing,
// and publishedBefore those of a change that was there already.
var (
	withoutWork     = []string{"nothing_to_do", "answered", "only_protected"}
	publishedBefore = []string{"already_published", "already_in_base"}
)

// workEnd is how a recorded run ended, where publishing it is left out, which no
// replay does.
func (h *history) workEnd() string {
	end := outcome.Outcome(h.Finished.Outcome)
	switch {
	case end == outcome.Changed, end == outcome.VerifyFailed:
		return string(end)
	case end == outcome.NoChanges && slices.Contains(publishedBefore, h.Finished.Reason) && h.hasChange():
		return string(h.outcomeOfWork())
	}
	return h.Finished.Outcome + "/" + h.Finished.Reason
}

// outcomeOfWork is the outcome that the recorded change and checks make.
func (h *history) outcomeOfWork() outcome.Outcome {
	switch {
	case !h.hasChange():
		return outcome.NoChanges
	case h.Work.Verify != nil && !h.Work.Verify.Passed:
		return outcome.VerifyFailed
	}
	return outcome.Changed
}

// reasonOfWork is the reason that goes with outcomeOfWork, by the last step of
// publishing; of no_changes there are several.
func (h *history) reasonOfWork() string {
	switch h.outcomeOfWork() {
	case outcome.NoChanges:
		return h.Finished.Reason
	case outcome.VerifyFailed:
		return "red"
	}
	return map[string]string{"": "left_in_checkout", "commit": "committed", "push": "pushed", "pull_request": "pull_request"}[h.Work.Published]
}

// endedWork says that the record has all that a run does, to its end: nothing but
// the work decides the outcome then, and what judges it.
func (h *history) endedWork() bool {
	checked := len(h.job.Verify) == 0 || h.Verify != nil && h.Verify.Attempt > h.Work.Attempts
	return h.Work.Done && checked && h.hasChange() && slices.Contains(lastSteps[h.Started.Publish], h.Work.Published)
}

// lastSteps are the steps with which publishing ends, by where it goes.
var lastSteps = map[string][]string{publishNone: {""}, publishLocal: {"push"}, publishGitHub: {"pull_request"}}

// judged are the outcomes of work that was done and is not published for what it
// is.
var judged = []outcome.Outcome{outcome.NoChanges, outcome.NeedsInput, outcome.PolicyViolation, outcome.BudgetExceeded, outcome.InvalidInput}

func (h *history) hasChange() bool { return h.Work.Change != nil && len(h.Work.Change.Files) > 0 }

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
	past := p.recorded.history
	if past.Finished == nil {
		return
	}
	if !past.Moved() { // else the checks on another base decided
		found.differs("outcome", past.workEnd(), endInWords(stop))
	}
	p.compareReason(found)
	tree := string(p.so.workspace.Base().Tree)
	if past.hasChange() {
		tree = past.Work.Change.TreeSHA
	}
	found.differs("tree", tree, found.Tree)
	p.compareChecks(found)
}

// compareReason compares the reason of a run that worked with how far it was
// published.
func (p *replay) compareReason(found *Replayed) {
	if past := p.recorded.history; !past.Moved() && past.Finished.Outcome == string(past.outcomeOfWork()) {
		found.differs("reason", past.Finished.Reason, past.reasonOfWork())
	}
}

func (p *replay) compareChecks(found *Replayed) {
	var recorded []transcript.VerifyRow
	if table := p.recorded.Work.Verify; table != nil {
		recorded = table.Rows
	}
	replayed := p.so.table.Rows
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
	past := p.recorded.history
	if _, err := p.recorded.rec.CheckChain(); err != nil && !errors.Is(err, record.ErrUnfinished) {
		found.differs("transcript", "as it was written", err.Error())
	}
	p.checkRows(found)
	end := past.Finished
	if end == nil {
		return
	}
	if end.Result != nil && p.recorded.rec.Has(record.ResultFile) {
		if err := p.recorded.rec.CheckResult(end); err != nil {
			found.differs(record.ResultFile, "as it was written", err.Error())
		}
	}
	follows := (&outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason}).ExitCode()
	found.differs("exit code", fmt.Sprint(end.ExitCode), fmt.Sprint(follows))
	found.differs("outcome", end.Outcome, string(past.follows()))
	p.compareReason(found)
}

// checkPatch compares the patch of the change with its digest. Who published a
// bundle wrote it anew.
func (p *replay) checkPatch(ctx context.Context, found *Replayed) error {
	change := p.recorded.Work.Change
	if change == nil || p.recorded.Moved() || p.recorded.rec.Has(record.PublishFile) || !p.recorded.rec.Has(change.Patch) {
		return nil
	}
	is, err := p.recorded.rec.Digest(ctx, change.Patch)
	if err != nil {
		return err
	}
	found.differs(change.Patch, change.SHA256, is.SHA256)
	return nil
}

// follows is the outcome that a record's change and checks make of what it says
// of its end.
func (h *history) follows() outcome.Outcome {
	end := outcome.Outcome(h.Finished.Outcome)
	if h.Moved() {
		return end // by the checks on another base
	}
	worked := end == outcome.Changed || end == outcome.VerifyFailed
	empty := end == outcome.NoChanges && slices.Contains(withoutWork, h.Finished.Reason)
	if worked || empty && h.hasChange() || h.endedWork() && !slices.Contains(judged, end) {
		return h.outcomeOfWork()
	}
	return end
}

// checkRows compares the last table of a record with the checks of its job, and
// what passed with how each came out.
func (p *replay) checkRows(found *Replayed) {
	past := p.recorded.history
	if past.Work.Verify == nil {
		return
	}
	passed := true
	for i, row := range past.Work.Verify.Rows {
		is := row
		if i < len(past.job.Verify) {
			is.Name, is.Run, is.Must = past.job.Verify[i].Name, past.job.Verify[i].Run, past.job.Verify[i].Must
		}
		is.Passed = past.Work.Verify.Attempt > 0 && verify.Passes(is)
		passed = passed && (is.Passed || past.Work.Verify.Attempt == 0)
		found.differs("check "+row.Name, checkInWords(row), checkInWords(is))
	}
	found.differs("number of checks", fmt.Sprint(len(past.Work.Verify.Rows)), fmt.Sprint(len(past.job.Verify)))
	found.differs("all checks pass", fmt.Sprint(past.Work.Verify.Passed), fmt.Sprint(passed))
}
