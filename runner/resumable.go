package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
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
		return cannotResume("it has ended; look at %s, and start a new one", resultFile)
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
	key := limitKey(h.Finished.Reason)
	if limit, was := limitOf(h.job.Limits, key), limitOf(h.limits, key); limit > was || limit == 0 {
		return nil
	}
	return cannotResume("%s is used up; raise it with --set %s=…", key, key)
}

// agentBudgets are the reasons of a run whose agent a limit ended.
var agentBudgets = []string{"turns", "tool_calls", "tokens", "cost", timeReason}

// limitKey is the job key of a limit that ended a run for that reason.
func limitKey(reason string) string {
	if reason == "cost" {
		reason = "cost_usd"
	}
	return "limits." + reason
}

// limitOf is the limit that a key names.
func limitOf(l job.Limits, key string) float64 {
	return map[string]float64{
		"limits.turns": float64(l.Turns), "limits.tool_calls": float64(l.ToolCalls), "limits.tokens": float64(l.Tokens),
		"limits.cost_usd": l.CostUSD, "limits.time": float64(l.Time), "limits.diff_lines": float64(l.DiffLines), "limits.diff_files": float64(l.DiffFiles),
	}[key]
}

// setLimits are the limits of a run that goes on, as the user gives them: no
// other setting can be another one.
func setLimits(l job.Limits, assignments []string) (job.Limits, error) {
	layer, err := job.Set(assignments)
	if err != nil {
		return l, invalidJob(err)
	}
	for _, a := range layer.Values {
		if !strings.HasPrefix(a.Key, "limits.") {
			return l, outcome.Stopf(outcome.InvalidInput, "not_a_limit",
				"%s cannot be set for a run that goes on: its settings are those that it was started with, but for limits; leave it out, or start a new run.", a.Key)
		}
	}
	given, err := job.LoadTemplate(layer)
	if err != nil {
		return l, invalidJob(err)
	}
	for _, a := range layer.Values {
		takeLimit(&l, given.Limits, a.Key)
	}
	return l, nil
}

func takeLimit(l *job.Limits, from job.Limits, key string) {
	switch key {
	case "limits.turns":
		l.Turns = from.Turns
	case "limits.tool_calls":
		l.ToolCalls = from.ToolCalls
	case "limits.tokens":
		l.Tokens = from.Tokens
	case "limits.cost_usd":
		l.CostUSD = from.CostUSD
	case "limits.time":
		l.Time = from.Time
	case "limits.diff_lines":
		l.DiffLines = from.DiffLines
	case "limits.diff_files":
		l.DiffFiles = from.DiffFiles
	case "limits.on_budget":
		l.OnBudget = from.OnBudget
	}
}

// stopped says whether a run that ended so can go on.
func (r *run) stopped(o outcome.Outcome) bool {
	return r.begun && r.checkout != nil && r.options.Replay == "" && r.replayed() == nil && !r.joins() && slices.Contains(goesOn, o)
}

// resumeHint tells a person how a run that was stopped goes on.
func (r *run) resumeHint(o outcome.Outcome, reason string) string {
	if !r.stopped(o) || r.movesIn { // the message says it already
		return ""
	}
	command := "agent-ci resume " + r.dir.path
	if o == outcome.BudgetExceeded {
		command += " --set " + limitKey(reason) + "=…"
	}
	return "It can go on: " + command + "."
}
