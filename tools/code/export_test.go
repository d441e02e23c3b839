package code

// Warmed waits until the engine that Warm began is started.
func (t *Tools) Warmed() {
	t.mu.Lock()
	s := t.spare
	t.mu.Unlock()
	if s != nil {
		_, _ = s()
	}
}
