package main

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/runner/progress"
)

// usualColumns is how wide a terminal is that does not say it.
const usualColumns = 80

// terminalOf is the terminal that standard error is, where it can show a status line; nil else.
func terminalOf(p process) *progress.Terminal {
	kind := p.variable("TERM")
	if kind == "" || kind == "dumb" || !isTerminal(p.stderr) {
		return nil
	}
	return &progress.Terminal{Columns: columnsOf(p.stderr.(*os.File)), Color: p.variable("NO_COLOR") == ""}
}

// columnsOf tells how wide a terminal is; 0 while the process is in the background of it, where
// the shell or another program has the cursor.
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
