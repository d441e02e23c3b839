//go:build !linux || race

package engine

import "runtime/debug"

// confine limits the process as far as possible here: the race detector needs more memory than
// permitted.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return nil
}
