package team

import (
	"cmp"
	"math"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// usedBelow returns the part of the agent's budget that its subagents have used or reserved. For the run's own agent this
// includes the subagents from before a resume. The caller holds the lock.
func (a *teamAgent) usedBelow() (all agent.Used) {
	if a.starter == nil {
		for _, s := range a.team.earlierSubagents {
			all = all.Add(usedBy(agent.Spent{Turns: s.Turns, Calls: s.Calls, Usage: s.Usage, Models: s.Models}, s.MaxUSD))
		}
	}
	for _, s := range a.team.subagents {
		if s.starter == a {
			all = all.Add(s.countedUse())
		}
	}
	return all
}

// countedUse returns the part of its starter's budget that a subagent takes: its use in finished turns, its reserved
// share and, while it is idle, the use of those below it. While it works, their use is part of its share.
func (s *teamAgent) countedUse() agent.Used {
	use := usedBy(s.spent, s.allowed.CostUSD-s.reserved.CostUSD).Add(s.reserved)
	if s.stopTurn == nil {
		use = use.Add(s.usedBelow())
	}
	return use
}

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
		if models[0].Price != nil && m.Price == nil && isUsed {
			return maxUSD
		}
		sum = price.AddCosts(sum, m.CostUSD)
	}
	return sum
}

// The smallest budget with which a subagent can start.
const (
	minTurns  = 2
	minCalls  = 1
	minTokens = 1000
)

// reserveShare reserves a part of the starter's remaining budget for the next turn of an idle subagent: an equal part for
// each subagent that may still start, and for the starter itself. It returns an error for the model if that is too little.
// The caller holds the lock.
func (s *teamAgent) reserveShare() error {
	t, starter := s.team, s.starter
	spent := usedBy(starter.agent.Work().Spent, 0).Add(starter.usedBelow())
	mayStart := max(t.job().Agents.MaxOpen-t.openCount(), 1)
	share, err := equalPart(starter.agent.Limits(), spent, mayStart+1)
	if err == nil {
		s.reserved, s.allowed = share, s.countedUse().Add(share)
	}
	return err
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

// limits returns the limits of a subagent, which count from its start.
func (s *teamAgent) limits() agent.Limits {
	l := s.starter.agent.Limits()
	l.Turns, l.Calls = ifLimited(l.Turns, s.allowed.Turns), ifLimited(l.Calls, s.allowed.Calls)
	l.Tokens, l.CostUSD = ifLimited(l.Tokens, s.allowed.Tokens), ifLimited(l.CostUSD, s.allowed.CostUSD)
	return l
}
