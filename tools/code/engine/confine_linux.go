//go:build !race

package engine

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// most bounds the process's memory, in bytes: the script's, and as much for communication.
const most = 2 * memory

// confine limits the process in case the script breaks the engine.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}
