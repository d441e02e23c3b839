//go:build !race

package engine

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// maxProcessMemory is the maximum memory of the process, in bytes: that of the script, and as much for messages.
const maxProcessMemory = 2 * memory

// confine limits the memory of the process, in case a script breaks the interpreter's own limit.
func confine() error {
	debug.SetMemoryLimit(memory / 4)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxProcessMemory, Max: maxProcessMemory})
}
