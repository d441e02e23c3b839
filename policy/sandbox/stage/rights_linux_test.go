package stage

import (
	"testing"
	"unsafe"

	"github.com/agent-ci/agent-ci/policy/must"

	"golang.org/x/sys/unix"
)

// A stack that grows meanwhile moves what is on it.
func TestAllThreadsCallKeepsArguments(t *testing.T) {
	for depth := range 500 {
		found := make(chan error, 1)
		go func() { found <- askFrom(depth) }()
		must.Do(t, <-found, depth, "calls deep")
	}
}

// askFrom asks for the time from so many calls deep.
func askFrom(depth int) error {
	if depth > 0 {
		return askFrom(depth - 1)
	}
	var now unix.Timespec
	if err := onAllThreads(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&now))); err != nil {
		return err
	}
	if now.Sec == 0 {
		return unix.EFAULT
	}
	return nil
}
