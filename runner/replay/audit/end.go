package audit

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// noWorkReasons lists no_changes reasons of work that left nothing, existingChangeReasons those of an
// existing change.
var (
	noWorkReasons         = []string{"nothing_to_do", "answered", "only_protected", "reviewed", "labelled", "commented"}
	existingChangeReasons = []string{"already_published", "already_in_base"}
	// postedReasons lists the reasons of a posted answer.
	postedReasons = []string{"reviewed", "labelled", "commented"}
)

// describeRecordedEnd returns a recorded end without publishing, which replays omit.
func (r Record) describeRecordedEnd() string {
	end := outcome.Stop{Outcome: outcome.Outcome(r.Finished.Outcome), Reason: r.Finished.Reason}
	if end.Outcome == outcome.NoChanges && slices.Contains(postedReasons, end.Reason) {
		end.Reason = "answered"
	}
	if end.Outcome == outcome.NoChanges && slices.Contains(existingChangeReasons, end.Reason) && r.hasChange() {
		return string(r.outcomeOfWork())
	}
	return describeEnd(&end)
}

// outcomeOfWork returns the outcome of the recorded change and checks.
func (r Record) outcomeOfWork() outcome.Outcome {
	switch {
	case !r.hasChange():
		return outcome.NoChanges
	case r.Work.Verify != nil && !r.Work.Verify.Passed:
		return outcome.VerifyFailed
	}
	return outcome.Changed
}

// reasonOfWork returns outcomeOfWork's reason, by the last publishing step; no_changes has several.
func (r Record) reasonOfWork() string {
	switch r.outcomeOfWork() {
	case outcome.NoChanges:
		return r.Finished.Reason
	case outcome.VerifyFailed:
		return "red"
	}
	return map[string]string{"": "left_in_checkout", "commit": "committed", "push": "pushed", "pull_request": "pull_request"}[r.Work.LastPublishStep]
}

// workIsComplete reports a complete record, where only work and judgement decide the outcome.
func (r Record) workIsComplete() bool {
	checked := len(r.Job.Verify) == 0 || r.Verify != nil && r.Verify.Attempt > r.Work.VerifyAttempts
	return r.Work.Done && checked && r.hasChange() && slices.Contains(lastSteps[r.Started.Publish], r.Work.LastPublishStep)
}

// lastSteps maps destinations to the last publishing steps.
var lastSteps = map[string][]string{"none": {""}, "local": {"push"}, "github": {"pull_request"}}

// judgedOutcomes lists outcomes of finished work that is not published.
var judgedOutcomes = []outcome.Outcome{outcome.NoChanges, outcome.NeedsInput, outcome.PolicyViolation, outcome.BudgetExceeded, outcome.InvalidInput}

func (r Record) hasChange() bool { return r.Work.Change != nil && len(r.Work.Change.Files) > 0 }

// impliedOutcome returns the outcome implied by the recorded change and checks, given the recorded end.
func (r Record) impliedOutcome() outcome.Outcome {
	end := outcome.Outcome(r.Finished.Outcome)
	if r.ChangeMoved() {
		return end // by the checks on another base
	}
	worked := end == outcome.Changed || end == outcome.VerifyFailed
	endedEmpty := end == outcome.NoChanges && slices.Contains(noWorkReasons, r.Finished.Reason)
	if worked || endedEmpty && r.hasChange() || r.workIsComplete() && !slices.Contains(judgedOutcomes, end) {
		return r.outcomeOfWork()
	}
	return end
}

// describeEnd leaves out of an end how a change was published.
func describeEnd(stop *outcome.Stop) string {
	if stop.Outcome == outcome.Changed || stop.Outcome == outcome.VerifyFailed {
		return string(stop.Outcome)
	}
	return string(stop.Outcome) + "/" + stop.Reason
}
