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

// ClaimOf is what a run of a job may use at most: its limits, and beyond them the dearest request
// that each of its agents may be waiting for when a limit ends the run. unpriced says why no cost
// can be claimed; empty where one can.
func ClaimOf(j *job.Job, models []Model) (c Claim, unpriced string) {
	agents := 1
	if j.Agents.Enabled {
		agents += j.Agents.Most
	}
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
	if unpriced == "" && j.Limits.CostUSD == 0 {
		unpriced = "limits.cost_usd is 0, so that nothing ends a run by its cost"
	}
	c.Tokens = j.Limits.Tokens + int64(agents)*longest
	if unpriced == "" {
		c.USD = price.Sum(j.Limits.CostUSD, float64(agents)*dearest)
	}
	return c, unpriced
}
