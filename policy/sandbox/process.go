//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is a command that was started. It leads a session and a process
// group of its own.
type Process struct {
	sandbox  *Sandbox
	cmd      *exec.Cmd
	terminal *os.File // our end of the command's terminal; nil without one
	done     chan struct{}
	status   Status
	err      error

	mu     sync.Mutex
	reaped bool // the process id may belong to somebody else
}

// Start starts c. The caller ends it with Kill or Close and sees its end
// through Done.
func (s *Sandbox) Start(c Command) (*Process, error) {
	cmd, err := command(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	p := &Process{sandbox: s, cmd: cmd, done: make(chan struct{})}
	output, theirs, err := p.connect(c.TTY)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	defer theirs.Close()
	if err := s.launch(p); err != nil {
		output.Close()
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	go p.follow(output, c.Output)
	return p, nil
}

// connect gives the command its standard streams.
func (p *Process) connect(tty Window) (ours, theirs *os.File, err error) {
	if tty == (Window{}) {
		ours, theirs, err = os.Pipe()
	} else {
		ours, theirs, err = openTerminal(tty)
		p.terminal, p.cmd.Stdin = ours, theirs
		p.cmd.SysProcAttr.Setctty = true // of file descriptor 0
	}
	p.cmd.Stdout, p.cmd.Stderr = theirs, theirs
	return ours, theirs, err
}

func command(c Command) (*exec.Cmd, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("the command is empty")
	}
	path, err := LookPath(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path: path,
		Args: c.Argv,
		Dir:  c.Dir,
		// Never nil: that would hand down agent-ci's own environment.
		Env:         append([]string{}, c.Env...),
		SysProcAttr: processAttributes(),
	}, nil
}

// launch makes Close know p before it starts, so that none is missed. The lock
// keeps a Kill waiting until there is something to kill.
func (s *Sandbox) launch(p *Process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.add(p); err != nil {
		return err
	}
	if err := s.starter.start(p.cmd); err != nil {
		p.reaped = true
		s.remove(p)
		close(p.done)
		return err
	}
	return nil
}

// follow reads the command's output until it has exited, ends what it left
// behind and reaps it.
func (p *Process) follow(from *os.File, to io.Writer) {
	defer close(p.done)
	defer p.sandbox.remove(p)
	defer from.Close()

	read := make(chan error, 1)
	go func() { read <- copyOutput(to, from) }()
	if !awaitExit(p.cmd.Process.Pid) {
		_ = p.cmd.Wait() // the id is let go early; statusOf has the result
	}
	_ = from.SetReadDeadline(time.Now().Add(drainWait))
	readErr := <-read
	err := p.reap()
	if errors.Is(readErr, os.ErrDeadlineExceeded) {
		// What held the pipe is dead now, unless it left the group.
		_ = from.SetReadDeadline(time.Now().Add(drainWait / 4))
		readErr = copyOutput(to, from)
	}
	if err == nil && readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("read the command's output: %w", readErr)
	}
	p.err = err
}

// copyOutput copies until the end. When to fails it goes on reading, so that
// the command neither blocks nor dies of a broken pipe.
func copyOutput(to io.Writer, from *os.File) error {
	if to == nil {
		to = io.Discard
	}
	buffer := make([]byte, 32<<10)
	var failed error
	for {
		n, err := from.Read(buffer)
		if n > 0 && failed == nil {
			_, failed = to.Write(buffer[:n])
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO): // EIO is a terminal's end on Linux
			return failed
		default:
			return errors.Join(failed, err)
		}
	}
}

// reap kills what is left of the group while the exited command still holds
// the group's id, and only then lets go of the id.
func (p *Process) reap() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	group := p.cmd.Process.Pid
	p.signal(syscall.SIGKILL)
	var err error
	if p.cmd.ProcessState == nil {
		err = p.cmd.Wait()
	}
	p.reaped = true
	if p.sandbox.AdoptOrphans {
		reapGroup(group)
	}
	p.status = statusOf(p.cmd.ProcessState)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("wait for the command: %w", err)
	}
	return nil
}

func statusOf(state *os.ProcessState) Status {
	if state == nil {
		return Status{ExitCode: -1}
	}
	wait, ok := state.Sys().(syscall.WaitStatus)
	if ok && wait.Signaled() {
		return Status{ExitCode: 128 + int(wait.Signal()), Signal: wait.Signal().String()}
	}
	return Status{ExitCode: state.ExitCode()}
}

// Kill ends every process of the command's group. It does not wait, and does
// nothing once the command has ended.
func (p *Process) Kill() { p.notify(syscall.SIGKILL) }

// Interrupt sends SIGINT to the command's process group.
func (p *Process) Interrupt() { p.notify(syscall.SIGINT) }

func (p *Process) notify(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.signal(sig)
	}
}

func (p *Process) signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, sig) // ESRCH: nobody is left
}

// Done is closed when the command has exited and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and tells how it was.
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.status, p.err
}
