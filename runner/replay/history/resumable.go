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

// StoppedFromOutside lists outcomes of runs that were stopped by something other than their work.
var StoppedFromOutside = []outcome.Outcome{outcome.Cancelled, outcome.ModelFailed, outcome.BudgetExceeded, outcome.ForgeFailed, outcome.ExtensionFailed, outcome.InternalError}

// NotResumable lists the reasons of ends that a resume would only repeat, by outcome. The next request would
// be the refused one, and a resume changes only limits.
var NotResumable = map[outcome.Outcome][]string{
	outcome.ModelFailed: {
		string(model.InvalidRequest), string(model.Refused), string(model.ContextLength), string(model.TierUnknown),
	},
	outcome.ExtensionFailed: {"git_filter"}, // the checkout of the run keeps the filter
	outcome.InvalidInput:    {"not_resumable", "git_filter"},
}

// RedactedMark begins the replacement of a secret in a transcript.
const RedactedMark = "[secret "

// Resumable returns why the run in a directory cannot resume, or nil if it can: with a scripted session's path, or ""
// for a model, and with a higher limit if one ended it. The checkout may still prevent it. A run that was killed
// between its last event and its result resumes to write the result.
func Resumable(dir *record.Directory, script string) error {
	var end record.Result
	pending := workspace.WorkPending(dir)
	hasResult, err := dir.ReadJSON(record.ResultFile, &end)
	endedByItself := hasResult && err == nil && !mayBeStop(end.Outcome)
	if endedByItself && !pending {
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
	return h.requireSameModelKind(script)
}

// CanResumeAfter reports whether a run that ends with outcome o could resume, by its transcript.
func CanResumeAfter(rec *record.Record, o outcome.Outcome) bool {
	if !rec.Started() || !mayBeStop(o) {
		return false
	}
	h, err := Read(rec)
	const pending = false
	return err == nil && h.isStop(o) && h.checkResumable(pending) == nil
}

// isStop reports whether a run that ends with outcome o was stopped by something other than its work. That includes
// invalid input after the agent began, such as a checkout that can no longer be written: once it is corrected,
// the work can continue.
func (h *Run) isStop(o outcome.Outcome) bool {
	return mayBeStop(o) && (o != outcome.InvalidInput || h.AgentBegan())
}

// mayBeStop is isStop for a run of which only the outcome is known.
func mayBeStop(o outcome.Outcome) bool {
	return slices.Contains(StoppedFromOutside, o) || o == outcome.InvalidInput
}

// ResumeHint tells people how to resume a run that ends this way. It returns "" if a resume would be in vain,
// and for a run of a campaign, which books only runs that it resumes itself. script is a scripted session's path or "".
func ResumeHint(rec *record.Record, getenv func(string) string, o outcome.Outcome, reason, script string) string {
	if slices.Contains(NotResumable[o], reason) || getenv(settings.CampaignVariable) != "" {
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

// checkResumable returns why the run cannot resume whatever its limits are, or nil. pending means that
// the work was not in the checkout at the end.
func (h *Run) checkResumable(pending bool) error {
	switch {
	case !h.StartedWork():
		return workspace.CannotResume("it was stopped before it had begun; start a new one")
	case h.Finished != nil && !pending && !h.isStop(outcome.Outcome(h.Finished.Outcome)):
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

// requireSameModelKind returns an error if a scripted run resumes with a model, or the other way round. script
// is a scripted session's path or "".
func (h *Run) requireSameModelKind(script string) error {
	switch {
	case h.Started.Scripted != "" && script == "":
		return workspace.CannotResume("its answers came from the scripted session %s; give it again with --replay FILE", h.Started.Scripted)
	case h.Started.Scripted == "" && script != "":
		return workspace.CannotResume("its answers came from a model; leave --replay out")
	}
	return nil
}

// endedError returns the error for resuming a run that ended by itself.
func endedError() error {
	return workspace.CannotResume("it has ended; look at %s, and start a new one", record.ResultFile)
}

// checkLimitRaised returns an error unless the limit that ended the run was raised.
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
