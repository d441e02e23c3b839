package main

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
)

// usualColumns is the width of a terminal that reports none.
const usualColumns = 80

// terminalOf returns standard error if it is a terminal that can show a status line; else nil.
func terminalOf(p process) *progress.Terminal {
	kind := p.variable("TERM")
	if kind == "" || kind == "dumb" || !isTerminal(p.stderr) {
		return nil
	}
	return &progress.Terminal{Columns: columnsOf(p.stderr.(*os.File)), Color: p.variable("NO_COLOR") == ""}
}

// columnsOf returns a function that returns the width of a terminal, or 0 while the process is in
// the background: the shell has the cursor then.
func columnsOf(terminal *os.File) func() int {
	fd := int(terminal.Fd())
	return func() int {
		if front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && front != unix.Getpgrp() {
			return 0
		}
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 {
			return usualColumns
		}
		return int(size.Col)
	}
}
