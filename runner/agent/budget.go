package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Limits end a long conversation. Zero means no limit.
type Limits struct {
	Turns     int
	Calls     int
	Tokens    int64
	CostUSD   float64
	TimeLimit time.Duration // since Began
	Began     time.Time
}

// The model is warned when warnShare of a budget is used. It gets its last turn at lastTurnShare.
const (
	warnShare     = 0.80
	lastTurnShare = 0.95
)

// LastTurnThreshold returns the time from which the model's next turn is its last. limited is false without a
// time limit.
func (l Limits) LastTurnThreshold() (at time.Time, limited bool) {
	return l.Began.Add(time.Duration(lastTurnShare * float64(l.TimeLimit))), l.TimeLimit > 0
}

// budget is one limit and its use.
type budget struct {
	reason, limitKey string
	used, limit      float64
	usedOfLimit      string // used and limit as text, such as "3 of 10 turns are used"
	remaining        string
	oneTurnLeft      bool // at most one turn is left, whatever share is used
}

// budgets returns the budgets that have a limit, with their use so far.
func (c *Conversation) budgets() []budget {
	l, spent := c.Limits, c.Spent()
	cost, _ := transcript.CostOf(c.spent.Models)
	bySubagents := c.subagentsUse()
	elapsed := time.Duration(0)
	if l.TimeLimit > 0 {
		elapsed = time.Since(l.Began)
	}
	turnLimit := remaining(l.Turns, bySubagents.Turns, 1)
	turns := budgetOf("turns", "limits.turns", "%d", "turns", spent.Turns, turnLimit)
	turns.oneTurnLeft = turnLimit-spent.Turns <= 1
	all := []budget{
		turns,
		budgetOf("tool_calls", "limits.tool_calls", "%d", "tool calls", spent.Calls, remaining(l.Calls, bySubagents.Calls, 1)),
		budgetOf("tokens", "limits.tokens", "%d", "tokens", spent.Usage.Total(), remaining(l.Tokens, bySubagents.Tokens, 1)),
		budgetOf("cost", "limits.cost_usd", "%.4f", "US dollars", cost, remaining(l.CostUSD, bySubagents.CostUSD, 1e-6)),
		{
			reason: "time", limitKey: "limits.time", used: float64(elapsed), limit: float64(l.TimeLimit),
			usedOfLimit: fmt.Sprintf("%s of %s are used", clip.Duration(elapsed.Round(time.Second)), clip.Duration(l.TimeLimit)), remaining: clip.Duration((l.TimeLimit - elapsed).Round(time.Second)),
		},
	}
	return slices.DeleteFunc(all, func(b budget) bool { return b.limit <= 0 })
}

// remaining returns limit minus the amount used by subagents, or minimum if less remains. minimum must be above 0,
// because a limit of 0 means no limit, here and in the result.
func remaining[N int | int64 | float64](limit, usedBySubagents, minimum N) N {
	if limit <= 0 || usedBySubagents == 0 {
		return limit
	}
	return max(limit-usedBySubagents, minimum)
}

// budgetOf returns a budget that is counted in unit, such as "tokens". verb is the fmt verb that prints an amount. reason is
// the budget's name, key that of its limit in the job file.
func budgetOf[N int | int64 | float64](reason, key, verb, unit string, used, limit N) budget {
	return budget{
		reason: reason, limitKey: key, used: float64(used), limit: float64(limit),
		usedOfLimit: fmt.Sprintf(verb+" of "+verb+" "+unit+" are used", used, limit), remaining: fmt.Sprintf(verb+" "+unit, limit-used),
	}
}

// exceeded returns the error that ends a run for this budget. Its message is opening, then the used amount.
func (b budget) exceeded(opening string) *outcome.Stop {
	return outcome.Stopf(outcome.BudgetExceeded, b.reason, "%s %s; raise %s or give a smaller task.", opening, b.usedOfLimit, b.limitKey)
}

// nearlyExceeded returns the error that ends a run whose agent was not done after its last turn.
func (b budget) nearlyExceeded() *outcome.Stop {
	return b.exceeded("The agent did not finish in its last turn, which it got when")
}

// stopIfOverLimit returns the error that ends the run if a budget is used up, or nil.
func (c *Conversation) stopIfOverLimit() error {
	for _, b := range c.budgets() {
		if b.used >= b.limit {
			return b.exceeded("The agent was stopped before it was done:")
		}
	}
	return nil
}

// budgetHead begins the message about budgets that are nearly used up.
const budgetHead = "More than 80 % of a budget of this run is used. Left: "

// lastTurnHead begins the message before the last turn.
const lastTurnHead = "This is your last turn: "

// lastBudget returns the budget that makes the next turn the last one, or nil if no budget does.
func (c *Conversation) lastBudget() *budget {
	for _, b := range c.budgets() {
		if b.oneTurnLeft || b.used >= lastTurnShare*b.limit {
			return &b
		}
	}
	return nil
}

// StopIfNoTurnLeft returns the error that ends the run if a budget allows no further turn, or nil. Ask it when an
// agent has ended but should take another turn.
func (c *Conversation) StopIfNoTurnLeft() *outcome.Stop {
	for _, b := range c.budgets() {
		if b.used >= lastTurnShare*b.limit {
			return b.exceeded("The agent has ended and gets no further turn for the rest, since")
		}
	}
	return nil
}

// stopIfKilledInLastTurn returns the error that ends a resumed run if it was killed in its last turn and the same
// budget is still nearly used up. Otherwise it returns nil.
func (c *Conversation) stopIfKilledInLastTurn() error {
	last := c.lastBudget()
	if last == nil || !strings.Contains(c.lastTurnMessage, "("+last.limitKey+")") { // as reportBudgets writes it
		return nil
	}
	return last.nearlyExceeded()
}

// reportBudgets tells the model, once per budget, that the budget is nearly used up. If a budget makes the
// next turn the last, it announces that and returns the budget as final. Otherwise final is nil.
func (c *Conversation) reportBudgets() (final *budget, err error) {
	if last := c.lastBudget(); last != nil {
		return last, c.Tell(fmt.Sprintf(lastTurnHead+"%s (%s). Calls in this answer still run, but you will not see their outputs. "+
			"Leave the checkout in a state that can be kept, and say in this answer what is done and what is left.", last.usedOfLimit, last.limitKey))
	}
	var remaining []string
	isNews := false
	for _, b := range c.budgets() {
		if b.used < warnShare*b.limit {
			continue
		}
		remaining = append(remaining, fmt.Sprintf("%s (%s)", b.remaining, b.limitKey))
		if !slices.Contains(c.reportedBudgets, b.reason) {
			isNews = true
			c.reportedBudgets = append(c.reportedBudgets, b.reason)
		}
	}
	if !isNews {
		return nil, nil
	}
	return nil, c.Tell(budgetHead + strings.Join(remaining, ", ") +
		". Finish what is begun, check it, and end with your summary; begin nothing new.")
}
