//go:build unix

package sandbox

import (
	"os"
	"strconv"
	"syscall"
)

// hideDescriptors keeps commands from inheriting what whoever started agent-ci
// left open. Go opens its own files close-on-exec; these it does not know.
func hideDescriptors() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // no such folder, no list: nothing that can be done here
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
