package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
)

// running is a command whose input and output agent-ci copies. The command gets pipes or a terminal of
// its own: an inherited descriptor of a file or folder would give it access outside of the sandbox.
type running struct {
	process *sandbox.Process
	finish  func() // waits for the rest of the output, and restores the terminal
}

// startPiped starts a command with pipes. Its output and error output stay separate.
func startPiped(session *sandboxcommand.Session, p process, argv []string) (*running, error) {
	started, err := attached.Start(session.Start, sandbox.Command{Argv: argv}, attached.Streams{Output: copyAll(p.stdout), Errors: copyAll(p.stderr)})
	if err != nil {
		return nil, err
	}
	// Nothing waits for this goroutine, because a read of standard input cannot be interrupted. It ends
	// with agent-ci.
	go func() {
		_, _ = io.Copy(started.Input, p.stdin)
		started.Input.Close()
	}()
	return &running{started.Process, func() { _, _ = started.Wait() }}, nil
}

// copyAll returns a function that copies its input to a writer until the input ends. After a failed write
// it discards the rest, so that the command does not block.
func copyAll(to io.Writer) func(io.Reader) error {
	return func(from io.Reader) error {
		if attached.To(to)(from) != nil {
			_, _ = io.Copy(io.Discard, from)
		}
		return nil
	}
}

// onTerminal reports whether standard input and output are terminals.
func onTerminal(p process) bool { return isTerminal(p.stdin) && isTerminal(p.stdout) }

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := windowOf(file)
	return err == nil
}

// windowOf returns the size of a terminal, or an error if file is not a terminal.
func windowOf(file *os.File) (sandbox.Window, error) {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return sandbox.Window{}, err
	}
	return sandbox.Window{Rows: max(size.Row, 1), Columns: max(size.Col, 1)}, nil
}

// startOnTerminal starts a command on a new terminal, and copies its output to this one. Each typed key
// goes to the command at once.
func startOnTerminal(session *sandboxcommand.Session, p process, argv []string) (*running, error) {
	keyboard := p.stdin.(*os.File)
	size, err := windowOf(keyboard)
	if err != nil {
		return nil, err
	}
	restore, err := makeRaw(keyboard)
	if err != nil {
		return nil, err
	}
	started, err := session.Start(sandbox.Command{Argv: argv, TTY: size, Output: p.stdout})
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	ctx, stop := context.WithCancel(context.Background())
	var followers sync.WaitGroup
	followers.Go(func() { followSize(ctx, started, keyboard) })
	go typeAll(ctx, started, keyboard) // not waited for: a read cannot be interrupted
	return &running{started, func() {
		stop()
		followers.Wait()
		_ = restore()
	}}, nil
}

// typeAll sends typed keys to the command until it ends.
func typeAll(ctx context.Context, started *sandbox.Process, keyboard io.Reader) {
	keys := make([]byte, 4096)
	for {
		n, err := keyboard.Read(keys)
		if err != nil || started.Type(ctx, string(keys[:n])) != nil {
			return
		}
	}
}

// followSize keeps the size of the command's terminal equal to this terminal's.
func followSize(ctx context.Context, started *sandbox.Process, terminal *os.File) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if size, err := windowOf(terminal); err == nil {
				_ = started.Resize(size) // the command may just have ended
			}
		}
	}
}

// makeRaw sets the terminal to raw mode (termios(3), cfmakeraw). Every key then reaches the command's
// terminal, which handles echo and interrupts.
func makeRaw(terminal *os.File) (restore func() error, err error) {
	return changeTerminal(terminal, func(raw *unix.Termios) {
		raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		raw.Oflag &^= unix.OPOST
		raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	})
}

// changeTerminal changes the settings of a terminal (termios(3)). restore sets the old ones again.
func changeTerminal(terminal *os.File, change func(*unix.Termios)) (restore func() error, err error) {
	fd := int(terminal.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	changed := *was
	change(&changed)
	return func() error { return unix.IoctlSetTermios(fd, setTermios, was) }, unix.IoctlSetTermios(fd, setTermios, &changed)
}

// usualColumns is the assumed width of a terminal that does not report one.
const usualColumns = 80

// terminalOf returns standard error if it is a terminal that can show a status line, or nil.
func terminalOf(p process) *progress.Terminal {
	kind := p.variable("TERM")
	if kind == "" || kind == "dumb" || !isTerminal(p.stderr) {
		return nil
	}
	return &progress.Terminal{Columns: columnsOf(p.stderr.(*os.File)), Color: p.variable("NO_COLOR") == ""}
}

// columnsOf returns a function that returns the width of a terminal. It returns 0 while the process is in
// the background, because the shell then writes there.
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
