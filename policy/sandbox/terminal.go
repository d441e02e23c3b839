//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// errNoTerminal is the error of Type and Resize for a command without a terminal.
var errNoTerminal = errors.New("the command has no terminal")

// openTerminal opens both ends of a pseudo-terminal.
func openTerminal(size Window) (ourEnd, childEnd *os.File, err error) {
	master, childEnd, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer master.Close()
	err = pty.Setsize(childEnd, &pty.Winsize{Rows: size.Rows, Cols: size.Columns})
	if err == nil {
		ourEnd, err = nonBlocking(master)
	}
	if err != nil {
		childEnd.Close()
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return ourEnd, childEnd, nil
}

// nonBlocking returns f as a file with deadlines, which package pty's files lack.
func nonBlocking(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Type types into the command's terminal like a keyboard; "\x03" interrupts the foreground program.
// If ctx ends while the command does not read, the rest is dropped. Calls must not overlap.
func (p *Process) Type(ctx context.Context, keys string) error {
	if p.terminal == nil {
		return errNoTerminal
	}
	_ = p.terminal.SetWriteDeadline(time.Time{})
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = p.terminal.SetWriteDeadline(time.Unix(1, 0)) // a past deadline ends WriteString
	})
	n, err := p.terminal.WriteString(keys)
	if !stop() {
		<-interrupted // otherwise the deadline could hit the next call
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%d of %d bytes were typed, as the command does not read: %w", n, len(keys), ctx.Err())
	}
	return fmt.Errorf("type into the terminal: %w", err)
}

// Resize gives the command's terminal another size.
func (p *Process) Resize(size Window) error {
	if p.terminal == nil {
		return errNoTerminal
	}
	if err := pty.Setsize(p.terminal, &pty.Winsize{Rows: size.Rows, Cols: size.Columns}); err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	return nil
}
