//go:build !linux || race

package engine

import "runtime/debug"

// confine limits the process itself, as far as that can be done here: the race detector takes more
// memory than a process may have.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return nil
}
