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

// describeRecordedEnd describes the recorded end without publishing, which replays omit.
func (r Record) describeRecordedEnd() string {
	end := outcome.Stop{Outcome: outcome.Outcome(r.Finished.Outcome), Reason: r.Finished.Reason}
	if end.Outcome == outcome.NoChanges && slices.Contains(postedReasons, end.Reason) {
		end.Reason = "answered"
	}
	if end.Outcome == outcome.NoChanges && slices.Contains(existingChangeReasons, end.Reason) && !r.Work.Change.Empty() {
		return string(r.outcomeOfWork())
	}
	return describeEnd(&end)
}

// outcomeOfWork returns the outcome that the recorded change and checks have before publishing.
func (r Record) outcomeOfWork() outcome.Outcome {
	switch {
	case r.Work.Change.Empty():
		return outcome.NoChanges
	case r.Work.Verify != nil && !r.Work.Verify.Passed:
		return outcome.VerifyFailed
	}
	return outcome.Changed
}

// reasonOfWork returns the reason for outcomeOfWork, by the last publishing step. For no_changes it returns the
// recorded one, because there are several.
func (r Record) reasonOfWork() string {
	switch r.outcomeOfWork() {
	case outcome.NoChanges:
		return r.Finished.Reason
	case outcome.VerifyFailed:
		return "red"
	}
	return map[string]string{"": "left_in_checkout", "commit": "committed", "push": "pushed", "pull_request": "pull_request"}[r.Work.LastPublishStep]
}

// isWorkComplete reports whether the agent was done, all checks ran and all publishing steps were made.
func (r Record) isWorkComplete() bool {
	checked := len(r.Job.Verify) == 0 || r.Verify != nil && r.Verify.Attempt > r.Work.VerifyAttempts
	isPublished := slices.Contains(finalSteps[r.Started.Publish], r.Work.LastPublishStep)
	return r.Work.Done && checked && !r.Work.Change.Empty() && isPublished
}

// finalSteps maps destinations to the last publishing steps of a complete run.
var finalSteps = map[string][]string{"none": {""}, "local": {"push"}, "github": {"pull_request"}}

// unpublishedOutcomes lists outcomes of finished work that is not published.
var unpublishedOutcomes = []outcome.Outcome{outcome.NoChanges, outcome.NeedsInput, outcome.PolicyViolation, outcome.BudgetExceeded, outcome.InvalidInput}

// impliedOutcome returns the outcome that follows from the recorded change and checks. If they do not decide,
// it returns the recorded outcome.
func (r Record) impliedOutcome() outcome.Outcome {
	end := outcome.Outcome(r.Finished.Outcome)
	if r.ChangeMoved() {
		return end // by the checks on another base
	}
	worked := end == outcome.Changed || end == outcome.VerifyFailed
	deniesChange := end == outcome.NoChanges && slices.Contains(noWorkReasons, r.Finished.Reason) && !r.Work.Change.Empty()
	wouldBePublished := r.isWorkComplete() && !slices.Contains(unpublishedOutcomes, end)
	if worked || deniesChange || wouldBePublished {
		return r.outcomeOfWork()
	}
	return end
}

// describeEnd returns outcome and reason of an end. It omits the reason of a change, which says how the change
// was published.
func describeEnd(stop *outcome.Stop) string {
	if stop.Outcome == outcome.Changed || stop.Outcome == outcome.VerifyFailed {
		return string(stop.Outcome)
	}
	return string(stop.Outcome) + "/" + stop.Reason
}
