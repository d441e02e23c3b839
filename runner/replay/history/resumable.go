package history

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// StoppedFromOutside lists outcomes of runs stopped by something around them instead of their work.
var StoppedFromOutside = []outcome.Outcome{outcome.Cancelled, outcome.ModelFailed, outcome.BudgetExceeded, outcome.ForgeFailed, outcome.ExtensionFailed, outcome.InternalError}

// PointlessToResume lists ends that a resume would repeat: the next request is the refused one, and resume
// only changes limits.
var PointlessToResume = map[outcome.Outcome][]string{
	outcome.ModelFailed: {
		string(model.InvalidRequest), string(model.Refused), string(model.ContextLength), string(model.TierUnknown),
	},
	outcome.ExtensionFailed: {"git_filter"}, // the checkout of the run keeps the filter
}

// RedactedMark begins the replacement of a secret in a transcript.
const RedactedMark = "[secret "

// Resumable returns nil if the run in a directory can resume, without a scripted session and with
// higher limits if one ended it, or the reason against it. The checkout may still prevent it. A run
// killed between last event and result resumes to write the result.
func Resumable(dir *record.Directory) error {
	var end record.Result
	pending := workspace.WorkPending(dir)
	hasResult, err := dir.ReadJSON(record.ResultFile, &end)
	if hasResult && err == nil && !pending && !slices.Contains(StoppedFromOutside, end.Outcome) {
		return endedError() // most runs end here, so their transcripts are not read
	}
	rec := record.New("", nil)
	rec.Directory = dir
	h, err := Read(rec)
	if err != nil {
		return err
	}
	if h.Finished != nil && !dir.Has(record.ResultFile) {
		return nil
	}
	if err := h.checkResumable(pending); err != nil {
		return err
	}
	return h.requireSameModelKind("")
}

// MayResume reports whether a run that ends as o could resume, by its transcript.
func MayResume(rec *record.Record, o outcome.Outcome) bool {
	if !rec.Started() || !slices.Contains(StoppedFromOutside, o) {
		return false
	}
	h, err := Read(rec)
	return err == nil && h.checkResumable(false) == nil
}

// ResumeHint tells people how to resume a run that ends this way, or returns "" if that would be in vain.
// script is a scripted session's path or "".
func ResumeHint(rec *record.Record, o outcome.Outcome, reason, script string) string {
	if slices.Contains(PointlessToResume[o], reason) {
		return ""
	}
	command := "agent-ci resume " + rec.Path()
	if script != "" {
		command += " --replay " + script
	}
	if o == outcome.BudgetExceeded {
		command += " --set " + settings.LimitKey(reason) + "=…"
	}
	return "To continue: " + command + "."
}

// checkResumableWithinLimits decides about a resume with the new limits. pending means that the work was not
// in the checkout at the end.
func (h *Run) checkResumableWithinLimits(pending bool) error {
	if err := h.checkResumable(pending); err != nil {
		return err
	}
	return h.checkLimitRaised()
}

// checkResumable is checkResumableWithinLimits for any limits.
func (h *Run) checkResumable(pending bool) error {
	switch {
	case !h.StartedWork():
		return workspace.CannotResume("it was stopped before it had begun; start a new one")
	case h.Finished != nil && !pending && !slices.Contains(StoppedFromOutside, outcome.Outcome(h.Finished.Outcome)):
		return endedError()
	case strings.Contains(string(h.Started.Job), RedactedMark):
		return workspace.CannotResume("its job holds a secret that the transcript does not have; put it into a variable and start a new one")
	case h.worksOnPullHead() && !h.AgentBegan():
		return workspace.CannotResume("it was stopped before its agent had begun to look at the pull request; start a new one")
	case h.ContinuesPull() && !h.AgentBegan():
		return workspace.CannotResume("it was stopped before the change of its pull request was in the checkout; start a new one")
	case h.Task.Repair != nil:
		return workspace.CannotResume("it repaired a pull request, which may have moved on since; the next repair begins anew")
	case h.ContinuesPull() && !intake.IsRunBranch(h.Workspace.Branch):
		return workspace.CannotResume("it went on with a person's pull request; ask there again")
	}
	return nil
}

// requireSameModelKind verifies that the run resumes with the same kind of answers. script is a scripted
// session's path.
func (h *Run) requireSameModelKind(script string) error {
	switch {
	case h.Started.Scripted != "" && script == "":
		return workspace.CannotResume("its answers came from the scripted session %s; give it again with --replay FILE", h.Started.Scripted)
	case h.Started.Scripted == "" && script != "":
		return workspace.CannotResume("its answers came from a model; leave --replay out")
	}
	return nil
}

func endedError() error {
	return workspace.CannotResume("it has ended; look at %s, and start a new one", record.ResultFile)
}

// checkLimitRaised verifies that the limit which ended the run was raised.
func (h *Run) checkLimitRaised() error {
	if h.Finished == nil || h.Finished.Outcome != string(outcome.BudgetExceeded) {
		return nil
	}
	key := settings.LimitKey(h.Finished.Reason)
	if limit, before := settings.LimitValue(h.Job.Limits, key), settings.LimitValue(h.LimitsAtStop, key); limit > before || limit == 0 {
		return nil
	}
	return workspace.CannotResume("%s is used up; raise it with --set %s=…", key, key)
}
