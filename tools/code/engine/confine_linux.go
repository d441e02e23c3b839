//go:build !race

package engine

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// most is how much memory the process may have: that of the script, and as much again for what
// goes between it and the host.
const most = 2 * memory

// confine limits the process itself, in case that its script breaks the engine.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}
