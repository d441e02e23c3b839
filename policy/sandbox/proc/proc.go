//go:build unix

// Package proc owns how this process starts, groups, freezes and ends its children, and what others
// see of it. It knows the kernel's means and no sandbox.
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
		return // no such folder, no list: nothing that can be done here
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
