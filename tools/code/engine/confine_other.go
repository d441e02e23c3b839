//go:build !linux || race

package engine

import "runtime/debug"

// confine only sets Go's memory limit. It is for systems other than Linux, and for the race detector,
// which needs more memory than a hard limit would permit.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return nil
}
