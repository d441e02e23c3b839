package main_test

import (
	"os/exec"
	"testing"
	"time"
)

// late returns a time a little before the tests' own limit (go test -timeout), and the zero
// time without a limit. No other limit decides a test: a slow machine makes it slow, not red.
func late(t testing.TB) time.Time {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{}
	}
	end, ok := limited.Deadline()
	if !ok {
		return time.Time{}
	}
	return end.Add(-time.Until(end) / 10)
}

// killLate kills a program that hangs, so that its test alone fails and shows what it printed.
func killLate(t testing.TB, cmd *exec.Cmd) {
	if end := late(t); !end.IsZero() {
		over := time.AfterFunc(time.Until(end), func() { _ = cmd.Process.Kill() })
		t.Cleanup(func() { over.Stop() })
	}
}
