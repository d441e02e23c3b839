//go:build !linux || race

package engine

import "runtime/debug"

// confine sets Go's memory limit. It sets no hard limit, because the system has none, or because the race detector
// would exceed it.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return nil
}
