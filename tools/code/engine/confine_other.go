//go:build !linux

package engine

import "runtime/debug"

// confine limits the process itself, as far as that can be done here.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return nil
}
