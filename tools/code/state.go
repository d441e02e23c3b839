package code

import "maps"

// Running returns the number of running scripts.
func (t *Tools) Running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	running := 0
	for _, c := range t.cells {
		if !c.hasEnded() {
			running++
		}
	}
	return running
}

// State returns the number of all scripts so far, and the values that they stored, for Options of a resumed run.
func (t *Tools) State() (cells int, stored map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cellCount, maps.Clone(t.stored)
}
