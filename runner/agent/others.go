package agent

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// Used is others' use of a conversation's budgets.
type Used struct {
	Turns   int
	Calls   int
	Tokens  int64
	CostUSD float64
}

// Add returns the sum of both.
func (u Used) Add(v Used) Used {
	return Used{u.Turns + v.Turns, u.Calls + v.Calls, u.Tokens + v.Tokens, u.CostUSD + v.CostUSD}
}

func (c *Conversation) others() Used {
	if c.Others == nil {
		return Used{}
	}
	return c.Others()
}

// mayCall reports whether the limit allows a call and counts it; 0 means no limit.
func (c *Conversation) mayCall(count func(limit int) bool) bool {
	limit := c.Limits.Calls
	if limit == 0 {
		return count(0)
	}
	limit -= c.others().Calls
	return limit > 0 && count(limit)
}

// hear adds new messages to the conversation.
func (c *Conversation) hear() error {
	if c.News == nil {
		return nil
	}
	for _, text := range c.News() {
		if err := c.Hear(text); err != nil {
			return err
		}
	}
	return nil
}

// Hear adds a message from outside the runner.
func (c *Conversation) Hear(text string) error {
	raw, err := rawitem.Words("user", text)
	if err != nil {
		return err
	}
	c.Add(raw)
	return nil
}

// Order adds a message to the beginning of a conversation, in the name of the runner.
func Order(text string) (json.RawMessage, error) { return rawitem.Words("developer", text) }

// asked is a conversation as its last request had it: each call in it has its output.
type asked struct {
	mu    sync.Mutex
	items []json.RawMessage
	of    string // the model
}

func (a *asked) note(items []json.RawMessage, of string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.items, a.of = slices.Clip(items), of
}

// SoFar is the conversation as its last request had it, as far as a model can read it. It may be
// called from any goroutine.
func (c *Conversation) SoFar(by string) []json.RawMessage {
	c.asked.mu.Lock()
	defer c.asked.mu.Unlock()
	if by == c.asked.of {
		return slices.Clone(c.asked.items)
	}
	left, _ := unreadable(c.asked.items)
	return rawitem.Without(c.asked.items, left)
}
