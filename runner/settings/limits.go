package settings

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// TimeReason is why a run ends at limits.time.
const TimeReason = "time"

// AgentBudgets are the reasons of a run whose agent a limit ended.
var AgentBudgets = []string{"turns", "tool_calls", "tokens", "cost", TimeReason}

// LimitKey is the job key of a limit that ended a run for that reason.
func LimitKey(reason string) string {
	if reason == "cost" {
		reason = "cost_usd"
	}
	return "limits." + reason
}

// LimitOf is the limit that a key names.
func LimitOf(l job.Limits, key string) float64 {
	return map[string]float64{
		"limits.turns": float64(l.Turns), "limits.tool_calls": float64(l.ToolCalls), "limits.tokens": float64(l.Tokens),
		"limits.cost_usd": l.CostUSD, "limits.time": float64(l.Time), "limits.diff_lines": float64(l.DiffLines), "limits.diff_files": float64(l.DiffFiles),
	}[key]
}

// SetLimits are the limits of a run that goes on, as the user gives them: no
// other setting can be another one.
func SetLimits(l job.Limits, assignments []string) (job.Limits, error) {
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
		copyLimit[a.Key](&l, &given.Limits)
	}
	return l, nil
}

// copyLimit copies the limit that a key names.
var copyLimit = map[string]func(to, from *job.Limits){
	"limits.turns":      func(to, from *job.Limits) { to.Turns = from.Turns },
	"limits.tool_calls": func(to, from *job.Limits) { to.ToolCalls = from.ToolCalls },
	"limits.tokens":     func(to, from *job.Limits) { to.Tokens = from.Tokens },
	"limits.cost_usd":   func(to, from *job.Limits) { to.CostUSD = from.CostUSD },
	"limits.time":       func(to, from *job.Limits) { to.Time = from.Time },
	"limits.diff_lines": func(to, from *job.Limits) { to.DiffLines = from.DiffLines },
	"limits.diff_files": func(to, from *job.Limits) { to.DiffFiles = from.DiffFiles },
	"limits.on_budget":  func(to, from *job.Limits) { to.OnBudget = from.OnBudget },
}
