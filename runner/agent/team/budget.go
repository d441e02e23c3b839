package team

import (
	"cmp"
	"math"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// usedByChildren returns the part of the agent's budget that its agents have used or reserved. For the run's own agent this
// includes the agents from before a resume. The caller holds the lock.
func (m *member) usedByChildren() (all agent.Used) {
	if m.child == nil {
		for _, a := range m.team.earlierAgents {
			all = all.Add(agent.Used{Turns: a.Turns, Calls: a.Calls, Tokens: a.Usage.Input + a.Usage.Output, CostUSD: knownCost(a.Models, a.MaxUSD)})
		}
	}
	for _, c := range m.team.children {
		if c.starter == m {
			all = all.Add(c.countedUse())
		}
	}
	return all
}

// countedUse returns the part of its starter's budget that a child takes: its use in finished turns, its reserved share
// and, while it is idle, the use of its own team. While it works, its team's use is part of its share.
func (c *child) countedUse() agent.Used {
	use := c.ownUse().Add(c.reservedShare)
	if c.ownTeam != nil && c.stopTurn == nil {
		use = use.Add(c.ownTeam.usedByChildren())
	}
	return use
}

// ownUse returns what the child itself has used in finished turns, without its team.
func (c *child) ownUse() agent.Used { return usedBy(c.spent, c.maxUSD-c.reservedShare.CostUSD) }

// usedBy returns what an agent has spent as an agent.Used. If the price of one of its models is unknown, the cost may be
// maxUSD, the agent's limit.
func usedBy(spent agent.Spent, maxUSD float64) agent.Used {
	return agent.Used{Turns: spent.Turns, Calls: spent.Calls, Tokens: spent.Usage.Total(), CostUSD: knownCost(spent.Models, maxUSD)}
}

// knownCost returns the cost of an agent's models in US dollars. The first is its own model, the others are fallbacks.
// If the first has a known price but a used fallback does not, it returns maxUSD, the agent's limit. If the first has
// none, it adds up the known costs.
func knownCost(models []transcript.ModelUse, maxUSD float64) (sum float64) {
	for _, m := range models {
		isUsed := m.Usage != (transcript.Usage{})
		if models[0].Price.Known() && !m.Price.Known() && isUsed {
			return maxUSD
		}
		sum = price.AddCosts(sum, m.CostUSD)
	}
	return sum
}

// The smallest budget with which a child can start.
const (
	minTurns  = 2
	minCalls  = 1
	minTokens = 1000
)

// shareForChild returns the part of the agent's remaining budget for one more child: an equal part for each agent that may
// still start, and for the agent itself. It returns an error for the model if that is too little. The caller holds the
// lock.
func (m *member) shareForChild() (agent.Used, error) {
	spent := usedBy(m.agent.Work().Spent, 0).Add(m.usedByChildren())
	mayStart := max(m.team.job().Agents.MaxOpen-m.team.openCount(), 1)
	return equalPart(m.agent.Limits(), spent, mayStart+1)
}

// equalPart returns the rest of limits after spent, divided by parts. It returns an error for the model if that is too
// little. Zero means no limit in limits and in the result.
func equalPart(limits agent.Limits, spent agent.Used, parts int) (agent.Used, error) {
	turns, turnsErr := partOf(limits.Turns, spent.Turns, minTurns, parts, "limits.turns")
	calls, callsErr := partOf(limits.Calls, spent.Calls, minCalls, parts, "limits.tool_calls")
	tokens, tokensErr := partOf(limits.Tokens, spent.Tokens, minTokens, parts, "limits.tokens")
	usd, usdErr := partOf(limits.CostUSD, spent.CostUSD, math.SmallestNonzeroFloat64, parts, "limits.cost_usd")
	return agent.Used{Turns: turns, Calls: calls, Tokens: tokens, CostUSD: usd}, cmp.Or(turnsErr, callsErr, tokensErr, usdErr)
}

// partOf returns the rest of one limit, divided by parts, or 0 if limit is 0. It returns an error for the model if that is
// less than minimum. key is the limit's name in the job file.
func partOf[N int | int64 | float64](limit, spent, minimum N, parts int, key string) (N, error) {
	part := ifLimited(limit, (limit-spent)/N(parts))
	if limit > 0 && part < minimum {
		return 0, agents.Refusef("There is too little left of %s for an agent besides you. Do the work yourself.", key)
	}
	return part, nil
}

// ifLimited returns n, or 0 (no limit) if limit is 0.
func ifLimited[N int | int64 | float64](limit, n N) N {
	if limit == 0 {
		return 0
	}
	return n
}

// limitsOf returns the limits of a child: the sum of what it has used and of its share, since limits count from the
// child's start.
func (m *member) limitsOf(used, share agent.Used) agent.Limits {
	l, all := m.agent.Limits(), used.Add(share)
	l.Turns, l.Calls = ifLimited(l.Turns, all.Turns), ifLimited(l.Calls, all.Calls)
	l.Tokens, l.CostUSD = ifLimited(l.Tokens, all.Tokens), ifLimited(l.CostUSD, all.CostUSD)
	return l
}

// reserveAgain reserves a share of the starter's budget for another turn of an ended child. The caller holds the
// lock.
func (c *child) reserveAgain() error {
	share, err := c.starter.shareForChild()
	if err != nil {
		return err
	}
	used := c.ownUse()
	if c.ownTeam != nil {
		used = used.Add(c.ownTeam.usedByChildren())
	}
	c.agent.SetLimits(c.starter.limitsOf(used, share))
	c.reservedShare, c.maxUSD = share, used.CostUSD+share.CostUSD
	return nil
}
