// Package sandbox owns how a run's commands are started, confined and ended.
// It knows argv, folders, environment and process trees; it knows nothing of
// tools, models or rules about which command may run.
//
// This version confines nothing: commands run with the rights of the user who
// started agent-ci, each in a process group of its own, and Level says so.
package sandbox

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"
)

// Level names how far commands are confined.
type Level string

// LevelNone means that nothing confines a command.
const LevelNone Level = "none"

// Sandbox starts the commands of one run. The zero value is ready.
type Sandbox struct {
	mu   sync.Mutex
	live map[*Process]struct{}
}

// Level is the confinement that commands get, and Layers what it is made of.
func (s *Sandbox) Level() Level { return LevelNone }

// Layers lists the kernel mechanisms in use.
func (s *Sandbox) Layers() []string { return []string{} }

// Command is what to start.
type Command struct {
	Argv   []string  // Argv[0] is looked up in the PATH of Env
	Dir    string    // absolute
	Env    []string  // all of the environment, NAME=value
	Output io.Writer // standard output and error, in the order of writing
}

// Status is how a command ended.
type Status struct {
	ExitCode int // 128+n when signal n ended it
	Signal   string
}

// Process is a command that was started. It leads a process group.
type Process struct {
	sandbox *Sandbox
	cmd     *exec.Cmd
	done    chan struct{}
	status  Status
	err     error
}

// drainWait is how long the output of a command that has exited is still read
// while a process that it left behind holds the pipe.
const drainWait = 100 * time.Millisecond

// ErrNotStarted wraps what kept a command from starting.
var ErrNotStarted = errors.New("command did not start")

// Run starts c and waits for it. When ctx ends first, the command's process
// group is killed and ctx's error returned with the status.
func (s *Sandbox) Run(ctx context.Context, c Command) (Status, error) {
	p, err := s.Start(c)
	if err != nil {
		return Status{}, err
	}
	defer p.Kill()
	select {
	case <-p.Done():
		return p.Wait()
	case <-ctx.Done():
		p.Kill()
		status, _ := p.Wait()
		return status, ctx.Err()
	}
}

// Done is closed when the command has exited and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and tells how it was.
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.status, p.err
}

// Close kills what is left of all commands and waits for them.
func (s *Sandbox) Close() {
	s.mu.Lock()
	left := make([]*Process, 0, len(s.live))
	for p := range s.live {
		left = append(left, p)
	}
	s.mu.Unlock()
	for _, p := range left {
		p.Kill()
		<-p.Done()
	}
}
