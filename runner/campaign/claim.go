package campaign

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Model is a model available to runs.
type Model struct {
	Name   string
	Price  *price.List // nil if unknown
	Window int64       // context window, in tokens
	Output int64       // tokens of the longest answer; 0 if unknown
}

// ClaimOf returns the maximum usage of a job's run. A request in progress when a limit is reached still
// costs, so the maximum is the limits plus the most expensive request of each agent. unpriced is why the
// cost cannot be bounded, or "".
func ClaimOf(j *job.Job, models []Model) (c Claim, unpriced string) {
	agents := maxConcurrentAgents(j)
	var mostExpensive Claim
	for _, m := range models {
		mostExpensive = mostExpensive.maxOfEach(m.maxRequestUsage(j, m.Window))
		switch {
		case unpriced != "": // the first reason is enough
		case m.Price == nil:
			unpriced = fmt.Sprintf("the price of %s is not known; give it as model.price", m.Name)
		case m.Price.Bound(j.Model.ServiceTier) == price.AtLeast:
			unpriced = fmt.Sprintf("the price of %s at the service tier %s is not known; leave model.service_tier out", m.Name, j.Model.ServiceTier)
		}
	}
	if unpriced == "" && j.Limits.CostUSD == 0 {
		unpriced = "limits.cost_usd is 0, so that nothing ends a run by its cost"
	}
	c.Tokens = j.Limits.Tokens + agents*mostExpensive.Tokens
	if unpriced == "" {
		c.USD = price.AddCosts(j.Limits.CostUSD, float64(agents)*mostExpensive.USD)
	}
	return c, unpriced
}

// maxConcurrentAgents returns how many agents of a run may wait for the model at the same time.
func maxConcurrentAgents(j *job.Job) int64 {
	if j.Agents.Enabled {
		return 1 + int64(j.Agents.MaxOpen)
	}
	return 1
}

// maxRequestUsage returns the maximum usage of one request with input tokens. An unknown price counts as 0.
func (m Model) maxRequestUsage(j *job.Job, input int64) Claim {
	output := cmp.Or(j.Model.MaxOutputTokens, m.Output, m.Window)
	most := Claim{Tokens: input + output}
	if m.Price == nil {
		return most
	}
	for _, tier := range []string{"", j.Model.ServiceTier} {
		read := price.Usage{Input: input, Output: output, ServiceTier: tier}
		written := price.Usage{Input: input, CacheWrite: input, Output: output, ServiceTier: tier}
		most.USD = max(most.USD, read.Cost(m.Price), written.Cost(m.Price))
	}
	return most
}

// maxOfEach returns the larger US dollars and the larger tokens of two claims.
func (c Claim) maxOfEach(other Claim) Claim {
	return Claim{USD: max(c.USD, other.USD), Tokens: max(c.Tokens, other.Tokens)}
}

// Request is a model request of a run.
type Request struct {
	Model string
	Input int64 // upper bound, in tokens
}

// MaxLostUsage returns the maximum usage of a request whose answer was lost. c is the run's claim; the
// result does not exceed the share of one request in it. A model that is not in models counts as the most
// expensive one.
func (c Claim) MaxLostUsage(j *job.Job, models []Model, r Request) (most Claim) {
	isKnown := slices.ContainsFunc(models, func(m Model) bool { return m.Name == r.Model })
	for _, m := range models {
		switch {
		case !isKnown:
			most = most.maxOfEach(m.maxRequestUsage(j, m.Window))
		case m.Name == r.Model:
			most = most.maxOfEach(m.maxRequestUsage(j, min(r.Input, m.Window)))
		}
	}
	agents := maxConcurrentAgents(j)
	return Claim{
		USD:    min(most.USD, max(price.AddCosts(c.USD, -j.Limits.CostUSD), 0)/float64(agents)),
		Tokens: min(most.Tokens, max(c.Tokens-j.Limits.Tokens, 0)/agents),
	}
}
