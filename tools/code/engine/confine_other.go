//go:build !linux || race

package engine

import "runtime/debug"

// confine only sets Go's memory limit. Other systems than Linux have no suitable limit, and the race
// detector needs more memory than a limit would permit.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return nil
}
