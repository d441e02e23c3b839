package proc

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Conceal hides environment and memory of this process from other processes of its user. It
// overwrites the initial environment, which the kernel shows in /proc/PID/environ; Go has its own
// copy. Root can still read the memory.
func Conceal() {
	eraseEnvironment()
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// eraseEnvironment overwrites the strings behind /proc/PID/environ. It does nothing without /proc.
func eraseEnvironment() {
	start, end := environmentBounds()
	const maxSize = 8 << 20 // the kernel accepts less for a new program
	if start <= 0 || end <= start || end-start > maxSize {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	_, _ = memory.WriteAt(make([]byte, end-start), start)
}

// environmentBounds returns the address range of the environment: fields 50 and 51 of
// /proc/PID/stat (proc(5)).
func environmentBounds() (start, end int64) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from field 3 on
	const envStart, envEnd = 50 - 3, 51 - 3
	if len(fields) <= envEnd {
		return 0, 0
	}
	start, _ = strconv.ParseInt(string(fields[envStart]), 10, 64)
	end, _ = strconv.ParseInt(string(fields[envEnd]), 10, 64)
	return start, end
}

// visibility counts the callers of Show that have not called hide.
var visibility struct {
	sync.Mutex
	users int
}

// Show makes this process visible to its user until hide is called. Writing user maps through
// /proc requires it.
func Show() (hide func()) {
	visibility.Lock()
	defer visibility.Unlock()
	if visibility.users == 0 {
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil || dumpable == 1 {
			return func() {}
		}
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}
	visibility.users++
	return func() {
		visibility.Lock()
		defer visibility.Unlock()
		if visibility.users--; visibility.users == 0 {
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		}
	}
}
