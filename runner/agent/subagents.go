package agent

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// Used is how much of a conversation's budgets subagents have used.
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

// Team manages the subagents of an agent.
type Team interface {
	// Used returns the used and reserved budget of subagents. It is safe for concurrent use.
	Used() Used
	// TakeNews returns the agent's new messages and the notices of its subagents' ends, and forgets them.
	TakeNews() []string
}

// subagentsUse returns what subagents have used, or zero if there are none.
func (c *Conversation) subagentsUse() Used {
	if c.Team == nil {
		return Used{}
	}
	return c.Team.Used()
}

// addNewMessages adds the messages that arrived since the last turn.
func (c *Conversation) addNewMessages() error {
	if c.Team == nil {
		return nil
	}
	for _, text := range c.Team.TakeNews() {
		if err := c.TellExternal(text); err != nil {
			return err
		}
	}
	return nil
}

// requestMemory is the last request, and the parts that the next one can reuse.
type requestMemory struct {
	lastRequest  requestedConversation
	lastSettings model.Settings
}

// requestedConversation is the conversation in the last request. Every call has its output.
type requestedConversation struct {
	mu    sync.Mutex
	items []json.RawMessage
	model string
}

func (r *requestedConversation) set(items []json.RawMessage, model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items, r.model = slices.Clip(items), model
}

// LastRequest returns the conversation in the last request, without the items that the model modelName
// cannot read. It may be called from any goroutine.
func (c *Conversation) LastRequest(modelName string) []json.RawMessage {
	c.lastRequest.mu.Lock()
	defer c.lastRequest.mu.Unlock()
	if modelName == c.lastRequest.model {
		return slices.Clone(c.lastRequest.items)
	}
	unreadable, _ := unreadableItems(c.lastRequest.items)
	return rawitem.WithoutIndexes(c.lastRequest.items, unreadable)
}
