package team

import (
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// used returns how much of the agent's budget the agents that it started have used or reserved. For the run's own
// agent this includes the agents from before a resume. The caller holds the lock.
func (m *member) used() (all agent.Used) {
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

// countedUse returns what a child counts against its starter's budget: its use in finished turns and its reserved
// share. A working child's own team is inside its share. Without a turn, the team's use is added.
func (c *child) countedUse() agent.Used {
	use := c.used().Add(c.reservedShare)
	if c.ownTeam != nil && c.stopTurn == nil {
		use = use.Add(c.ownTeam.used())
	}
	return use
}

// used returns what a child itself used in finished turns.
func (c *child) used() agent.Used { return usedBy(c.spent, c.maxUSD-c.reservedShare.CostUSD) }

func usedBy(spent agent.Spent, mostUSD float64) agent.Used {
	return agent.Used{Turns: spent.Turns, Calls: spent.Calls, Tokens: spent.Usage.Total(), CostUSD: knownCost(spent.Models, mostUSD)}
}

// knownCost returns the cost of models in US dollars. The first is the agent's own model, the others are fallbacks. If
// only the first has a known price, a used fallback could cost anything: it returns mostUSD, the agent's limit. If the
// price of the first is unknown, it counts known costs alone.
func knownCost(models []transcript.ModelUse, mostUSD float64) (sum float64) {
	for _, m := range models {
		if models[0].Price.Known() && !m.Price.Known() && m.Usage != (transcript.Usage{}) {
			return mostUSD
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

// share returns an equal part of the agent's remaining budget. There is one part for the agent itself and one for
// each agent that may still start. The error tells the model that too little is left. The caller holds the lock.
func (m *member) share() (agent.Used, error) {
	starter := m.agent
	limits, work, others := starter.Limits(), starter.Work(), m.used()
	return equalPart(limits, usedBy(work.Spent, 0).Add(others), max(m.team.job().Agents.MaxOpen-m.team.openCount()+1, 2))
}

// equalPart divides what is left of limits by parts. It returns an error for the model if a part is too small.
func equalPart(limits agent.Limits, spent agent.Used, parts int) (agent.Used, error) {
	part := agent.Used{
		Turns: (limits.Turns - spent.Turns) / parts, Calls: (limits.Calls - spent.Calls) / parts,
		Tokens: (limits.Tokens - spent.Tokens) / int64(parts), CostUSD: (limits.CostUSD - spent.CostUSD) / float64(parts),
	}
	for _, budget := range []struct {
		limited bool
		little  bool
		key     string
	}{
		{limits.Turns > 0, part.Turns < minTurns, "limits.turns"},
		{limits.Calls > 0, part.Calls < minCalls, "limits.tool_calls"},
		{limits.Tokens > 0, part.Tokens < minTokens, "limits.tokens"},
		{limits.CostUSD > 0, part.CostUSD <= 0, "limits.cost_usd"},
	} {
		if budget.limited && budget.little {
			return agent.Used{}, agents.Refusef("There is too little left of %s for an agent besides you. Do the work yourself.", budget.key)
		}
	}
	return agent.Used{
		Turns: ifLimited(limits.Turns, part.Turns), Calls: ifLimited(limits.Calls, part.Calls),
		Tokens: ifLimited(limits.Tokens, part.Tokens), CostUSD: ifLimited(limits.CostUSD, part.CostUSD),
	}, nil
}

// ifLimited returns n, or 0 (no limit) if limit is 0.
func ifLimited[N int | int64 | float64](limit, n N) N {
	if limit == 0 {
		return 0
	}
	return n
}

// limitsOf returns the limits of a child: what it has used, plus its share. Limits count from the child's start.
func (m *member) limitsOf(used, share agent.Used) agent.Limits {
	l, all := m.agent.Limits(), used.Add(share)
	l.Turns, l.Calls = ifLimited(l.Turns, all.Turns), ifLimited(l.Calls, all.Calls)
	l.Tokens, l.CostUSD = ifLimited(l.Tokens, all.Tokens), ifLimited(l.CostUSD, all.CostUSD)
	return l
}

// reserveAgain reserves a share of the starter's budget for another turn of an ended child. The caller holds the
// lock.
func (c *child) reserveAgain() error {
	share, err := c.starter.share()
	if err != nil {
		return err
	}
	used := c.used()
	if c.ownTeam != nil {
		used = used.Add(c.ownTeam.used())
	}
	c.agent.SetLimits(c.starter.limitsOf(used, share))
	c.reservedShare, c.maxUSD = share, used.CostUSD+share.CostUSD
	return nil
}
