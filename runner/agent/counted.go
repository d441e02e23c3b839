package agent

import "sync"

// counted are the calls of a run that count against limits.tool_calls. Scripts make theirs while
// an answer of the model comes.
type counted struct {
	mu      sync.Mutex
	direct  int // of the model, and those that the API ran itself, of the answer that comes too
	scripts int // of scripts
}

// nest counts a call of a script where the limit leaves one; 0 is none.
func (c *counted) nest(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && c.direct+c.scripts >= limit {
		return false
	}
	c.scripts++
	return true
}

// call takes how many calls the model has made before its next one, and counts that where the
// limit leaves one.
func (c *counted) call(made, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = made
	if limit > 0 && c.direct+c.scripts >= limit {
		return false
	}
	c.direct++
	return true
}

// settle takes how many calls the model has made.
func (c *counted) settle(made int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = made
}

// restore takes what was counted before a restart.
func (c *counted) restore(made, scripts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct, c.scripts = made, scripts
}

func (c *counted) ofScripts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts
}
