//go:build unix

// Package proc starts, groups, freezes and kills children of this process, and hides this process's
// memory and environment from others. It does not know sandboxes.
package proc

import (
	"os"
	"strconv"
	"syscall"
)

// HideDescriptors prevents commands from inheriting descriptors of agent-ci's parent. Go's own
// files are close-on-exec already.
func HideDescriptors() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // without this folder there is no list of descriptors
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
