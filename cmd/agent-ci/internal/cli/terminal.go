package cli

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
)

// OnTerminal reports whether standard input and output are terminals.
func OnTerminal(p Process) bool { return IsTerminal(p.Stdin) && IsTerminal(p.Stdout) }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	if output, is := stream.(*Output); is {
		stream = output.Writer
	}
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := WindowOf(file)
	return err == nil
}

// WindowOf returns the size of a terminal, or an error if file is not a terminal.
func WindowOf(file *os.File) (sandbox.Window, error) {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return sandbox.Window{}, err
	}
	return sandbox.Window{Rows: max(size.Row, 1), Columns: max(size.Col, 1)}, nil
}

// ChangeTerminal changes the settings of a terminal (termios(3)). restore sets the old ones again.
func ChangeTerminal(terminal *os.File, change func(*unix.Termios)) (restore func() error, err error) {
	fd := int(terminal.Fd())
	original, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	changed := *original
	change(&changed)
	return func() error { return unix.IoctlSetTermios(fd, setTermios, original) }, unix.IoctlSetTermios(fd, setTermios, &changed)
}

// usualColumns is the assumed width of a terminal that does not report one.
const usualColumns = 80

// StatusTerminal returns standard error if it is a terminal that can show a status line, or nil.
func StatusTerminal(p Process) *progress.Terminal {
	kind := p.Variable("TERM")
	if kind == "" || kind == "dumb" || !IsTerminal(p.Stderr) {
		return nil
	}
	return &progress.Terminal{Columns: terminalWidth(p.Stderr.(*os.File)), Color: p.Variable("NO_COLOR") == ""}
}

// terminalWidth returns a function that returns the width of a terminal, in columns. It returns 0 while the
// process is in the background, because the shell then writes there.
func terminalWidth(terminal *os.File) func() int {
	fd := int(terminal.Fd())
	return func() int {
		if foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && foreground != unix.Getpgrp() {
			return 0
		}
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 {
			return usualColumns
		}
		return int(size.Col)
	}
}
