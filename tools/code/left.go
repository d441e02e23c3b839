package code

import "maps"

// Running is how many scripts run.
func (t *Tools) Running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	running := 0
	for _, c := range t.cells {
		if !c.isOver() {
			running++
		}
	}
	return running
}

// State returns the number of scripts and their stored values for scripts after Close.
func (t *Tools) State() (cells int, stored map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, maps.Clone(t.stored)
}
