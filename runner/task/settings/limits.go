package settings

import (
	"reflect"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

const TimeReason = "time"

// AgentLimitReasons lists the outcome reasons of runs stopped by a limit on the agent.
var AgentLimitReasons = []string{"turns", "tool_calls", "tokens", "cost", TimeReason}

// LimitKey returns the job key of the limit behind an outcome reason.
func LimitKey(reason string) string {
	if reason == "cost" {
		reason = "cost_usd"
	}
	return "limits." + reason
}

// LimitValue returns the value of the limit with that job key, such as limits.turns. It is 0 for an unknown
// key.
func LimitValue(l job.Limits, key string) float64 {
	switch limit := limitField(&l, key); {
	case limit.CanInt():
		return float64(limit.Int())
	case limit.CanFloat():
		return limit.Float()
	}
	return 0
}

// limitField returns the field of the limit called key. It is the zero Value for an unknown key.
func limitField(l *job.Limits, key string) reflect.Value {
	return job.Format().Root.Key("limits").Value(reflect.ValueOf(l).Elem(), strings.TrimPrefix(key, "limits."))
}

// SetLimits returns the limits of a resumed run after the user's assignments. It rejects any other
// key.
func SetLimits(l job.Limits, assignments []string) (job.Limits, error) {
	layer := config.SetLayer(assignments...)
	for _, a := range layer.Values {
		if a.Key != "" && !strings.HasPrefix(a.Key, "limits.") {
			return l, outcome.Stopf(outcome.InvalidInput, "not_resumable",
				"%s cannot be changed when a run resumes, since only limits can; leave it out, or start a new run.", a.Key)
		}
	}
	changed, err := job.LoadTemplate(layer)
	if err != nil {
		return l, invalidJob(err)
	}
	for _, a := range layer.Values {
		limitField(&l, a.Key).Set(limitField(&changed.Limits, a.Key))
	}
	return l, nil
}
