package campaign

import (
	"cmp"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/price"
)

// Model is one that a run may ask.
type Model struct {
	Name   string
	Price  *price.List // nil where it is not known
	Window int64       // tokens of a request
	Output int64       // tokens of the longest answer; 0 where that is not known
}

// Limits are what the job of a campaign sets for one run. Beyond the limits a claim holds the dearest
// request of each agent.
type Limits struct {
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens"`
	Agents int     `json:"agents"` // that may wait for an answer at the same time
}

// LimitsOf returns the limits of a job.
func LimitsOf(j *job.Job) Limits {
	l := Limits{USD: j.Limits.CostUSD, Tokens: j.Limits.Tokens, Agents: 1}
	if j.Agents.Enabled {
		l.Agents += j.Agents.Most
	}
	return l
}

// ClaimOf is what a run of a job may use at most: its limits, and beyond them the dearest request
// that each of its agents may be waiting for when a limit ends the run. unpriced says why no cost
// can be claimed; empty where one can.
func ClaimOf(j *job.Job, models []Model) (c Claim, unpriced string) {
	limits := LimitsOf(j)
	var dearest float64
	var longest int64
	for _, m := range models {
		output := cmp.Or(j.Model.MaxOutputTokens, m.Output, m.Window)
		longest = max(longest, m.Window+output)
		switch {
		case unpriced != "":
		case !m.Price.Known():
			unpriced = fmt.Sprintf("the price of %s is not known; give it as model.price", m.Name)
		case m.Price.Bound(j.Model.ServiceTier) == price.AtLeast:
			unpriced = fmt.Sprintf("the price of %s at the service tier %s is not known; give it as model.price.service", m.Name, j.Model.ServiceTier)
		default:
			tokens := price.Tokens{Input: m.Window, Output: output}
			written := price.Tokens{Input: m.Window, CacheWrite: m.Window, Output: output}
			for _, tier := range []string{"", j.Model.ServiceTier} {
				dearest = max(dearest, m.Price.Of(tokens, tier), m.Price.Of(written, tier))
			}
		}
	}
	if unpriced == "" && limits.USD == 0 {
		unpriced = "limits.cost_usd is 0, so that nothing ends a run by its cost"
	}
	c.Tokens = limits.Tokens + int64(limits.Agents)*longest
	if unpriced == "" {
		c.USD = price.Sum(limits.USD, float64(limits.Agents)*dearest)
	}
	return c, unpriced
}
