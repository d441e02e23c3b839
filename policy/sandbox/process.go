//go:build unix

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// Process is a started command. It leads its own session and process group.
type Process struct {
	sandbox  *Sandbox
	child    child
	terminal *os.File // our end of the command's terminal; nil without one
	done     chan struct{}
	status   Status
	err      error

	mu     sync.Mutex
	reaped bool // the process id may belong to another process
}

// child is a command's first process, started by this program or by the
// supervisor inside.
type child interface {
	// start starts the command. A single stream is its output and error, and a terminal also its input
	// and controlling terminal. Three streams are input, output and error.
	start(streams []*os.File, terminal bool) error
	awaitExit()
	signal(syscall.Signal) // to its group
	// reap kills the rest of the group and releases the group's id.
	reap() (Status, error)
}

// missingProgram is the supervisor's error for a missing program. It matches exec.ErrNotFound.
type missingProgram string

func (m missingProgram) Error() string { return string(m) }

func (m missingProgram) Is(target error) bool { return target == exec.ErrNotFound }

// IsMissing reports whether a command failed to start because its program, the program's
// interpreter, or the command's folder is missing. The kernel does not distinguish these.
func IsMissing(err error) bool {
	return errors.Is(err, ErrNotStarted) && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist))
}

// Start starts c and does not wait for it. End it with Kill or Sandbox.Close, and wait with Done or
// Wait. An error wraps ErrNotStarted.
func (s *Sandbox) Start(c Command) (*Process, error) {
	s.pausing.RLock()
	defer s.pausing.RUnlock()
	p, err := s.start(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return p, nil
}

// start is Start without its lock, and without ErrNotStarted in its errors.
func (s *Sandbox) start(c Command) (*Process, error) {
	if err := s.ensureOpen(); err != nil {
		return nil, err
	}
	first, err := s.child(c)
	if err != nil {
		return nil, err
	}
	p := &Process{sandbox: s, child: first, done: make(chan struct{})}
	if streams := c.Streams; streams != nil {
		if err := s.launch(p, []*os.File{streams.Input, streams.Output, streams.Error}); err != nil {
			return nil, err
		}
		go p.awaitExit()
		return p, nil
	}
	output, childEnd, err := p.openOutput(c.TTY)
	if err != nil {
		return nil, err
	}
	defer childEnd.Close()
	if err := s.launch(p, []*os.File{childEnd}); err != nil {
		output.Close()
		return nil, err
	}
	go p.copyOutputUntilExit(output, c.Output)
	return p, nil
}

// awaitExit waits until a command whose streams the caller handles has exited, and reaps it.
func (p *Process) awaitExit() {
	defer close(p.done)
	defer p.sandbox.unregister(p)
	p.child.awaitExit()
	p.err = p.reap()
}

// openOutput opens the command's output, a pipe or a terminal. ourEnd is the end to read.
func (p *Process) openOutput(tty Window) (ourEnd, childEnd *os.File, err error) {
	if tty == (Window{}) {
		return os.Pipe()
	}
	p.terminal, childEnd, err = openTerminal(tty)
	return p.terminal, childEnd, err
}

// child prepares a command for its start, by the supervisor or, without confinement, by this process.
func (s *Sandbox) child(c Command) (child, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("the command is empty")
	}
	if s.conn != nil {
		c.Env = replaceVariables(c.Env, s.env)
		return s.conn.child(c), nil
	}
	return newLocalChild(s, c)
}

// replaceVariables returns env with the variables of replacements, which replace those of the same name.
func replaceVariables(env, replacements []string) []string {
	result := make([]string, 0, len(env)+len(replacements))
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.ContainsFunc(replacements, func(replacement string) bool { return strings.HasPrefix(replacement, name+"=") }) {
			result = append(result, variable)
		}
	}
	return append(result, replacements...)
}

// launch registers p for Close and then starts its command. The lock delays Kill until the process
// exists.
func (s *Sandbox) launch(p *Process, streams []*os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.register(p); err != nil {
		return err
	}
	if err := p.child.start(streams, p.terminal != nil); err != nil {
		p.reaped = true // there is no process to signal
		s.unregister(p)
		close(p.done)
		return err
	}
	return nil
}

// copyOutputUntilExit copies the command's output until the command exits. It then kills the rest of its process
// group and reaps the command.
func (p *Process) copyOutputUntilExit(from *os.File, to io.Writer) {
	defer close(p.done)
	defer p.sandbox.unregister(p)
	defer from.Close()

	copied, drained := make(chan error, 1), proc.Drain(from)
	go func() { copied <- copyOutput(to, drained) }()
	p.child.awaitExit()
	_ = from.SetReadDeadline(time.Now().Add(drainWait))
	readErr := <-copied
	err := p.reap()
	if errors.Is(readErr, os.ErrDeadlineExceeded) {
		// Processes that kept the pipe open are dead now, unless they left the group. Read the rest.
		_ = from.SetReadDeadline(time.Now().Add(drainWait / 4))
		readErr = copyOutput(to, drained)
	}
	timedOut := errors.Is(readErr, os.ErrDeadlineExceeded) // what was read is enough
	if readErr != nil && !timedOut {
		err = cmp.Or(err, fmt.Errorf("read the command's output: %w", readErr))
	}
	p.err = err
}

// copyOutput copies to the end. After a failed write it keeps reading, so the command neither
// blocks nor gets SIGPIPE.
func copyOutput(to io.Writer, from io.Reader) error {
	if to == nil {
		to = io.Discard
	}
	const minBuffer, maxBuffer = 1 << 10, 32 << 10 // the buffer starts small, since most commands print little
	buffer := make([]byte, minBuffer)
	var writeErr error
	for {
		n, err := from.Read(buffer)
		if n > 0 && writeErr == nil {
			_, writeErr = to.Write(buffer[:n])
		}
		if n == len(buffer) && n < maxBuffer {
			buffer = make([]byte, 2*n)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO): // EIO is a terminal's end on Linux
			return writeErr
		default:
			return errors.Join(writeErr, err)
		}
	}
}

// reap kills the rest of the group while the exited command still holds the group's id, and then
// releases it.
func (p *Process) reap() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	var err error
	p.status, err = p.child.reap()
	return err
}

// statusOf converts a wait status. Like a shell, it uses exit code 128+n for signal n.
func statusOf(wait syscall.WaitStatus) Status {
	if wait.Signaled() {
		return Status{ExitCode: 128 + int(wait.Signal()), Signal: wait.Signal().String()}
	}
	return Status{ExitCode: wait.ExitStatus()}
}

// Kill kills every process of the command's group and does not wait for it. It does nothing after the
// command has exited.
func (p *Process) Kill() { p.Signal(syscall.SIGKILL) }

// Signal sends a signal to the command's process group.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.child.signal(sig)
	}
}

// Done is closed when the command has exited and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited reports whether Done is closed.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits until Done is closed. It returns the command's status and an error of waiting or reading.
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.status, p.err
}
