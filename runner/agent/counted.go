package agent

import "sync"

// callCounter counts a run's calls for limits.tool_calls. Scripts make calls even while an answer is
// arriving.
type callCounter struct {
	mu      sync.Mutex
	direct  int // of the model, and those that the API ran itself, of the answer that comes too
	scripts int // of scripts
}

// countScriptCall counts a script's call within the limit; 0 means none.
func (c *callCounter) countScriptCall(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && c.direct+c.scripts >= limit {
		return false
	}
	c.scripts++
	return true
}

// countCall counts the model's next call if within the limit. made is the number of its calls so far.
func (c *callCounter) countCall(made, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = made
	if limit > 0 && c.direct+c.scripts >= limit {
		return false
	}
	c.direct++
	return true
}

// setCalls takes how many calls the model has made.
func (c *callCounter) setCalls(made int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = made
}

// restore sets the counts from before a restart.
func (c *callCounter) restore(made, scripts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct, c.scripts = made, scripts
}

func (c *callCounter) scriptCalls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts
}
