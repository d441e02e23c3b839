package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// Limits end a conversation that goes on too long. Zero means no limit.
type Limits struct {
	Turns   int
	Calls   int
	Tokens  int64
	CostUSD float64
	Time    time.Duration // since Began
	Began   time.Time
}

// How much of a budget is used when the model is told, and when it gets its
// last turn.
const (
	toldAt = 0.80
	lastAt = 0.95
)

// LastTurnAt is when the model gets its last turn by the time that is used; false where that has no limit.
func (l Limits) LastTurnAt() (at time.Time, limited bool) {
	return l.Began.Add(time.Duration(lastAt * float64(l.Time))), l.Time > 0
}

// budget is one limit and what of it is used.
type budget struct {
	reason, key string
	used, limit float64
	amount      string // used and limit, for a reader
	left        string
	last        bool // there is one more turn at most, whatever the share
}

// budgets are those that have a limit.
func (c *Conversation) budgets() []budget {
	l, spent := c.Limits, c.Spent()
	cost, _ := c.Cost()
	others := c.others()
	elapsed := time.Duration(0)
	if l.Time > 0 {
		elapsed = time.Since(l.Began)
	}
	all := []budget{
		budgetOf("turns", "limits.turns", "%d", "turns", spent.Turns, left(l.Turns, others.Turns, 1)),
		budgetOf("tool_calls", "limits.tool_calls", "%d", "tool calls", spent.Calls, left(l.Calls, others.Calls, 1)),
		budgetOf("tokens", "limits.tokens", "%d", "tokens", spent.Usage.Total(), left(l.Tokens, others.Tokens, 1)),
		budgetOf("cost", "limits.cost_usd", "%.4f", "US dollars", cost, left(l.CostUSD, others.CostUSD, 1e-6)),
		{
			reason: "time", key: "limits.time", used: float64(elapsed), limit: float64(l.Time),
			amount: fmt.Sprintf("%s of %s are used", elapsed.Round(time.Second), l.Time), left: (l.Time - elapsed).Round(time.Second).String(),
		},
	}
	all[0].last = left(l.Turns, others.Turns, 1)-spent.Turns <= 1
	return slices.DeleteFunc(all, func(b budget) bool { return b.limit <= 0 })
}

// left is what others leave of a limit, and least where that is nothing: 0 is no limit.
func left[N int | int64 | float64](limit, others, least N) N {
	if limit <= 0 || others == 0 {
		return limit
	}
	return max(limit-others, least)
}

// budgetOf is a limit on how many of a unit there are; verb is how fmt writes a number
// of them.
func budgetOf[N int | int64 | float64](reason, key, verb, unit string, used, limit N) budget {
	return budget{
		reason: reason, key: key, used: float64(used), limit: float64(limit),
		amount: fmt.Sprintf(verb+" of "+verb+" "+unit+" are used", used, limit), left: fmt.Sprintf(verb+" "+unit, limit-used),
	}
}

func (b budget) isLast() bool { return b.last || b.used >= lastAt*b.limit }

// ends is the end of a run by the budget. happened ends in how much of it is used.
func (b budget) ends(happened string) *outcome.Stop {
	return outcome.Stopf(outcome.BudgetExceeded, b.reason, "%s %s; raise %s or give a smaller task.", happened, b.amount, b.key)
}

// nearlyExceeded is the end after a last turn in which the agent did not finish.
func (b budget) nearlyExceeded() *outcome.Stop {
	return b.ends("The agent did not finish in its last turn, which it got when")
}

// withinLimits is the hard stop.
func (c *Conversation) withinLimits() error {
	for _, b := range c.budgets() {
		if b.used >= b.limit {
			return b.ends("The agent was stopped before it was done:")
		}
	}
	return nil
}

// budgetWords begin what the model is told of its budgets.
const budgetWords = "More than 80 % of a budget of this run is used. Left: "

// lastWords begin what the model is told before its last turn.
const lastWords = "This is your last turn: "

// lastBudget is the budget that makes the next turn the last, or nil.
func (c *Conversation) lastBudget() *budget {
	for _, b := range c.budgets() {
		if b.isLast() {
			return &b
		}
	}
	return nil
}

// NearlySpent is the end of a run whose agent has ended and would need a further turn,
// where its budgets leave none: the agent has had its last turn, or has used up what
// was left for one. It is nil where a turn is left.
func (c *Conversation) NearlySpent() *outcome.Stop {
	for _, b := range c.budgets() {
		if b.used >= lastAt*b.limit {
			return b.ends("The agent has ended and gets no further turn to mend what is left, since")
		}
	}
	return nil
}

// hadLastTurn is the end of a run that was killed in the last turn which one of
// its budgets left it, or nil.
func (c *Conversation) hadLastTurn() error {
	last := c.lastBudget()
	if last == nil || !strings.Contains(c.lastTold, "("+last.key+")") {
		return nil
	}
	return last.nearlyExceeded()
}

// tellBudgets tells the model what is left when that is little, once for each
// budget. It gives the budget that makes the next turn the last, or nil.
func (c *Conversation) tellBudgets() (*budget, error) {
	if last := c.lastBudget(); last != nil {
		return last, c.Tell(fmt.Sprintf(lastWords+"%s (%s). Calls in this answer still run, but you will not see their outputs. "+
			"Leave the checkout in a state that can be kept, and say in this answer what is done and what is left.", last.amount, last.key))
	}
	var left []string
	news := false
	for _, b := range c.budgets() {
		if b.used < toldAt*b.limit {
			continue
		}
		left = append(left, fmt.Sprintf("%s (%s)", b.left, b.key))
		if !slices.Contains(c.told, b.reason) {
			news = true
			c.told = append(c.told, b.reason)
		}
	}
	if !news {
		return nil, nil
	}
	return nil, c.Tell(budgetWords + strings.Join(left, ", ") +
		". Finish what is begun, check it, and end with your summary; begin nothing new.")
}
