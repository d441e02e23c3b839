package agent

import "sync"

// callCounter counts a conversation's calls for limits.tool_calls. It has a lock because scripts make
// calls while an answer arrives.
type callCounter struct {
	mu      sync.Mutex
	direct  int // calls by the model and by the API itself, including the answer that is arriving
	scripts int // calls by scripts
}

// countCall increments number, which is direct or scripts of callCount, and returns true. If limits.tool_calls is
// reached, with the calls of subagents, it returns false instead.
func (c *Conversation) countCall(number *int) bool {
	limit, bySubagents := c.Limits.Calls, c.subagentsUse().Calls
	c.callCount.mu.Lock()
	defer c.callCount.mu.Unlock()
	made := bySubagents + c.callCount.direct + c.callCount.scripts
	if limit > 0 && made >= limit {
		return false
	}
	*number++
	return true
}

// setCalls sets the number of calls that the model has made.
func (c *callCounter) setCalls(made int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = made
}

// scriptCalls returns the number of calls by scripts.
func (c *callCounter) scriptCalls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts
}
