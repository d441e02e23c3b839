package agent

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model"
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

func (c *Conversation) othersUse() Used {
	if c.OthersUse == nil {
		return Used{}
	}
	return c.OthersUse()
}

// mayCall reports whether the limit allows a call and counts it; 0 means no limit.
func (c *Conversation) mayCall(count func(limit int) bool) bool {
	limit := c.Limits.Calls
	if limit == 0 {
		return count(0)
	}
	limit -= c.othersUse().Calls
	return limit > 0 && count(limit)
}

// addNews adds new messages to the conversation.
func (c *Conversation) addNews() error {
	if c.NewMessages == nil {
		return nil
	}
	for _, text := range c.NewMessages() {
		if err := c.AddExternal(text); err != nil {
			return err
		}
	}
	return nil
}

// requestMemory is the last request, and what the next one can use of it.
type requestMemory struct {
	lastRequest  requestedConversation
	lastSettings model.Settings
	bodies       model.Bodies
}

// requestedConversation is a conversation as its last request had it: each call in it has its output.
type requestedConversation struct {
	mu    sync.Mutex
	items []json.RawMessage
	model string
}

func (a *requestedConversation) set(items []json.RawMessage, of string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.items, a.model = slices.Clip(items), of
}

// LastRequest is the conversation as its last request had it, as far as a model can read it. It may be
// called from any goroutine.
func (c *Conversation) LastRequest(by string) []json.RawMessage {
	c.lastRequest.mu.Lock()
	defer c.lastRequest.mu.Unlock()
	if by == c.lastRequest.model {
		return slices.Clone(c.lastRequest.items)
	}
	left, _ := unreadableItems(c.lastRequest.items)
	return rawitem.Without(c.lastRequest.items, left)
}
