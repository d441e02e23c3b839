package agent

import "sync"

// callCounter counts a conversation's calls for limits.tool_calls. It has a lock because scripts make
// calls while an answer arrives.
type callCounter struct {
	mu      sync.Mutex
	direct  int // calls by the model and by the API itself, including the answer that is arriving
	scripts int // calls by scripts
}

// countScriptCall counts a script's call and returns true, or returns false at the limit.
func (c *callCounter) countScriptCall(limit int) bool { return c.count(&c.scripts, limit) }

// countCall counts the model's next call and returns true, or returns false at the limit. made is the number of
// earlier calls by the model.
func (c *callCounter) countCall(made, limit int) bool {
	c.setCalls(made)
	return c.count(&c.direct, limit)
}

// count increments number, which is c.direct or c.scripts, and returns true. At the limit it returns false
// instead. A limit of 0 means no limit.
func (c *callCounter) count(number *int, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && c.direct+c.scripts >= limit {
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
