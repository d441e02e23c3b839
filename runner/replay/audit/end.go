package audit

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// withoutWork are the reasons of no_changes that mean that the work left nothing,
// and publishedBefore those of a change that was there already.
var (
	withoutWork     = []string{"nothing_to_do", "answered", "only_protected", "reviewed", "labelled", "commented"}
	publishedBefore = []string{"already_published", "already_in_base"}
	// saidOnForge are those of an answer that was published on an issue or pull request.
	saidOnForge = []string{"reviewed", "labelled", "commented"}
)

// workEnd is how a recorded run ended, where publishing it is left out, which no
// replay does.
func (r Record) workEnd() string {
	end := outcome.Stop{Outcome: outcome.Outcome(r.Finished.Outcome), Reason: r.Finished.Reason}
	if end.Outcome == outcome.NoChanges && slices.Contains(saidOnForge, end.Reason) {
		end.Reason = "answered"
	}
	if end.Outcome == outcome.NoChanges && slices.Contains(publishedBefore, end.Reason) && r.hasChange() {
		return string(r.outcomeOfWork())
	}
	return endInWords(&end)
}

// outcomeOfWork is the outcome that the recorded change and checks make.
func (r Record) outcomeOfWork() outcome.Outcome {
	switch {
	case !r.hasChange():
		return outcome.NoChanges
	case r.Work.Verify != nil && !r.Work.Verify.Passed:
		return outcome.VerifyFailed
	}
	return outcome.Changed
}

// reasonOfWork is the reason that goes with outcomeOfWork, by the last step of
// publishing; of no_changes there are several.
func (r Record) reasonOfWork() string {
	switch r.outcomeOfWork() {
	case outcome.NoChanges:
		return r.Finished.Reason
	case outcome.VerifyFailed:
		return "red"
	}
	return map[string]string{"": "left_in_checkout", "commit": "committed", "push": "pushed", "pull_request": "pull_request"}[r.Work.Published]
}

// endedWork says that the record has all that a run does, to its end: nothing but
// the work decides the outcome then, and what judges it.
func (r Record) endedWork() bool {
	checked := len(r.Job.Verify) == 0 || r.Verify != nil && r.Verify.Attempt > r.Work.Attempts
	return r.Work.Done && checked && r.hasChange() && slices.Contains(lastSteps[r.Started.Publish], r.Work.Published)
}

// lastSteps are the steps with which publishing ends, by where it goes.
var lastSteps = map[string][]string{"none": {""}, "local": {"push"}, "github": {"pull_request"}}

// judged are the outcomes of work that was done and is not published for what it
// is.
var judged = []outcome.Outcome{outcome.NoChanges, outcome.NeedsInput, outcome.PolicyViolation, outcome.BudgetExceeded, outcome.InvalidInput}

func (r Record) hasChange() bool { return r.Work.Change != nil && len(r.Work.Change.Files) > 0 }

// follows is the outcome that a record's change and checks make of what it says
// of its end.
func (r Record) follows() outcome.Outcome {
	end := outcome.Outcome(r.Finished.Outcome)
	if r.Moved() {
		return end // by the checks on another base
	}
	worked := end == outcome.Changed || end == outcome.VerifyFailed
	empty := end == outcome.NoChanges && slices.Contains(withoutWork, r.Finished.Reason)
	if worked || empty && r.hasChange() || r.endedWork() && !slices.Contains(judged, end) {
		return r.outcomeOfWork()
	}
	return end
}

// endInWords leaves out of an end how a change was published.
func endInWords(stop *outcome.Stop) string {
	if stop.Outcome == outcome.Changed || stop.Outcome == outcome.VerifyFailed {
		return string(stop.Outcome)
	}
	return string(stop.Outcome) + "/" + stop.Reason
}
