package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// goesOn are the outcomes of runs that were stopped: something around them ended
// them, not their work.
var goesOn = []outcome.Outcome{outcome.Cancelled, outcome.ModelFailed, outcome.BudgetExceeded, outcome.ForgeFailed, outcome.InternalError}

func cannotResume(format string, args ...any) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: %s.", fmt.Sprintf(format, args...))
}

// resumable says whether a run can go on, with the limits that it then has.
func (h *history) resumable() error {
	switch {
	case !h.Begun():
		return cannotResume("it was stopped before it had begun; start a new one")
	case h.Finished != nil && !h.pending && !slices.Contains(goesOn, outcome.Outcome(h.Finished.Outcome)):
		return cannotResume("it has ended; look at %s, and start a new one", record.ResultFile)
	case strings.Contains(string(h.Started.Job), redactedMark):
		return cannotResume("its job holds a secret that the transcript does not have; put it into a variable and start a new one")
	case h.onPull() && !h.worked():
		return cannotResume("it was stopped before the change of its pull request was in the checkout; start a new one")
	case h.onPull() && !strings.HasPrefix(h.Workspace.Branch, runBranches):
		return cannotResume("it went on with a person's pull request; ask there again")
	case h.Started.Scripted != "":
		return cannotResume("its answers came from a scripted session; start it again")
	}
	return h.withinLimit()
}

// withinLimit makes sure that the limit which ended a run has been raised.
func (h *history) withinLimit() error {
	if h.Finished == nil || h.Finished.Outcome != string(outcome.BudgetExceeded) {
		return nil
	}
	key := settings.LimitKey(h.Finished.Reason)
	if limit, was := settings.LimitOf(h.job.Limits, key), settings.LimitOf(h.limits, key); limit > was || limit == 0 {
		return nil
	}
	return cannotResume("%s is used up; raise it with --set %s=…", key, key)
}

// stopped says whether a run that ended so can go on.
func (r *run) stopped(o outcome.Outcome) bool {
	return r.rec.Begun() && r.checkout != nil && r.options.Replay == "" && r.replayed() == nil && !r.joins() && slices.Contains(goesOn, o)
}

// resumeHint tells a person how a run that was stopped goes on.
func (r *run) resumeHint(o outcome.Outcome, reason string) string {
	if !r.stopped(o) || r.movesIn { // the message says it already
		return ""
	}
	command := "agent-ci resume " + r.rec.Path()
	if o == outcome.BudgetExceeded {
		command += " --set " + settings.LimitKey(reason) + "=…"
	}
	return "It can go on: " + command + "."
}
