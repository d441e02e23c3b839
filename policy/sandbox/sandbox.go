// Package sandbox starts, confines and kills a run's commands. It knows argv, environment, kernel
// layers and process trees. Package grants decides about files, package filter about system calls.
// It does not know tools, models and rules for commands.
//
// Open confines commands with the kernel's namespaces, Landlock and seccomp, as far as they work. Level
// and Layers describe the result. One process inside the sandbox, the supervisor (package stage), starts
// all commands of a Sandbox, so they share /tmp and loopback. The zero Sandbox confines nothing: commands
// have the rights of agent-ci's user.
//
// Each command leads its own session and has no terminal unless Command.TTY asks for one. When it
// exits, the rest of its process group is killed. Close kills processes in other groups: always with
// namespaces, otherwise on Linux with AdoptOrphans. On other systems they outlive the run.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// Sandbox starts the commands of one run. The zero value is ready and confines nothing. Close kills
// its commands.
type Sandbox struct {
	// AdoptOrphans makes this process the parent of orphaned commands, so that Close can kill them
	// (Linux; prctl(2), PR_SET_CHILD_SUBREAPER). Close then kills every child of this process in
	// another session, so only one such Sandbox may be open.
	AdoptOrphans bool
	// Unconfined describes unconfined commands; nil means those of a run.
	Unconfined *outside.Use

	openLater func() error // opens a sandbox of OpenOnFirstUse unless it is open; nil for others
	confinement

	pausing sync.RWMutex // locked while commands are stopped; read-locked while one starts

	mu       sync.Mutex
	live     map[*Process]struct{} // nil until the first start
	closed   bool
	close    sync.Once
	closeErr error
}

// confinement is the result of Open; zero is none.
type confinement struct {
	conn              *supervisorConn // nil if nothing is confined
	group             *proc.Group     // the cgroup of the supervisor and its commands; may be nil
	starter           proc.Starter    // starts the supervisor, or unconfined commands
	level             Level
	layers            []string
	hasMachineNetwork bool // commands have the machine's network
	env               []string
	tree              string         // path of the overlaid workspace, or ""
	stopServing       func()         // stops the proxy; nil without one
	listeners         []net.Listener // at Options.Ports
	readLoans         []*os.File     // mounts of the workspace for other sandboxes, read-only
	writeLoans        []*os.File     // the same, writable
}

// Level returns how far commands are confined.
func (s *Sandbox) Level() Level {
	if s.conn == nil {
		return LevelNone
	}
	return s.level
}

// Layers lists the kernel mechanisms in use.
func (s *Sandbox) Layers() []string { return append([]string{}, s.layers...) }

// Command describes a command to start.
type Command struct {
	Argv []string // Argv[0] is looked up in the PATH of Env
	Dir  string   // absolute
	// Env is the whole environment, NAME=value. Nil and empty mean no variables. A confined command
	// additionally gets the sandbox's TMPDIR, TMP and TEMP, and the proxy's variables.
	Env []string
	// Output gets standard output and error in the order of writing, from one
	// goroutine. Once it fails, the rest of the output is read and dropped.
	Output io.Writer
	// TTY is the size of the command's controlling terminal for all streams. Without one it has
	// pipes and an empty standard input.
	TTY Window
	// Streams replaces Output and TTY by standard streams. The caller may close them after Start.
	// The command can do anything with the descriptors: pipes are safe, outside folders and files
	// are not.
	Streams *Streams
}

// Streams are a command's standard input, output and error.
type Streams struct{ Input, Output, Error *os.File }

// Window is the size of a terminal in characters.
type Window struct{ Rows, Columns uint16 }

// Status describes how a command ended.
type Status struct {
	ExitCode int    // 128+n when signal n ended it
	Signal   string // name of that signal
}

var (
	// ErrNotStarted wraps the reason of a failed start.
	ErrNotStarted = errors.New("command did not start")
	// errClosed is the reason for a failed start after Close.
	errClosed = errors.New("the sandbox is closed")
)

const (
	// drainWait bounds reading after a command has exited, because one of its processes may keep the
	// pipe open. It is long enough for a process substitution to write its output.
	drainWait = 100 * time.Millisecond
	// closeWait bounds how long Close waits until killed processes have exited.
	closeWait = 30 * time.Second
)

// Run starts c and waits for it. If ctx ends first, Run kills the command's process group and returns
// the error of ctx with the status.
func (s *Sandbox) Run(ctx context.Context, c Command) (Status, error) {
	if err := ctx.Err(); err != nil {
		return Status{}, err
	}
	p, err := s.Start(c)
	if err != nil {
		return Status{}, err
	}
	select {
	case <-p.Done():
		return p.Wait()
	case <-ctx.Done():
		p.Kill()
		status, _ := p.Wait()
		return status, ctx.Err()
	}
}

// KillAll kills all commands and reports whether none is left, so that no command changes files any
// more. No command starts afterwards. Close is still required, and waits for the kernel's cleanup.
func (s *Sandbox) KillAll() bool {
	running := s.markClosed()
	if s.conn == nil || killAll(running) > 0 {
		return false
	}
	return s.conn.killEverything()
}

// Close kills all commands and waits up to 30 seconds for their end. The error counts the survivors.
// Nothing starts afterwards.
func (s *Sandbox) Close() error {
	s.close.Do(func() { s.closeErr = s.closeAll() })
	return s.closeErr
}

// closeAll kills all commands and releases what the sandbox holds. It returns an error if processes are still
// alive after closeWait.
func (s *Sandbox) closeAll() error {
	running := s.markClosed()
	if running == nil && s.conn == nil {
		return nil // nothing was ever started
	}
	alive := killAll(running)
	if s.conn != nil {
		s.conn.close()
	}
	s.closeUnused()
	if s.stopServing != nil {
		s.stopServing()
	}
	s.starter.Stop()
	if s.AdoptOrphans {
		alive += proc.EndOrphans(closeWait)
	}
	s.group.Remove()
	if alive > 0 {
		return fmt.Errorf("%d processes of the run's commands did not die within %s of being killed", alive, closeWait)
	}
	return nil
}

// killAll kills the processes and returns how many are left after closeWait.
func killAll(processes map[*Process]struct{}) (alive int) {
	for p := range processes {
		p.Kill()
	}
	deadline, stop := context.WithTimeout(context.Background(), closeWait)
	defer stop()
	for p := range processes {
		select {
		case <-p.Done():
		case <-deadline.Done():
			alive++
		}
	}
	return alive
}

// markClosed marks s as closed and returns running commands, or nil if nothing was ever started.
func (s *Sandbox) markClosed() map[*Process]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return maps.Clone(s.live)
}

// register adds p to the live processes, so that Close kills it. It returns errClosed if s is closed.
func (s *Sandbox) register(p *Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.initialize(); err != nil {
		return err
	}
	s.live[p] = struct{}{}
	return nil
}

// initialize prepares s for its first process. It returns errClosed if s is closed. The caller holds s.mu.
func (s *Sandbox) initialize() error {
	switch {
	case s.closed:
		return errClosed
	case s.live != nil:
		return nil
	}
	s.live = make(map[*Process]struct{})
	if s.conn == nil {
		s.prepareUnconfined()
	}
	return nil
}

// prepareUnconfined prepares this process to start unconfined commands.
func (s *Sandbox) prepareUnconfined() {
	proc.HideDescriptors()
	if s.AdoptOrphans {
		proc.AdoptOrphans()
	}
	s.starter.Open()
}

func (s *Sandbox) unregister(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, p)
}

// OpenOnFirstUse returns a sandbox that opens at its first command, under ctx. That saves time in runs
// without commands. Start returns an error of Open, and the next command tries again. Use Probe to
// find errors earlier.
func OpenOnFirstUse(ctx context.Context, o Options) *Sandbox {
	s := new(Sandbox)
	var opening sync.Mutex
	opened := false
	s.openLater = func() error {
		opening.Lock()
		defer opening.Unlock()
		if opened {
			return nil
		}
		err := s.openWith(ctx, o)
		opened = err == nil
		return err
	}
	return s
}

// ensureOpen opens a sandbox of OpenOnFirstUse unless it is open.
func (s *Sandbox) ensureOpen() error {
	if s.openLater == nil {
		return nil
	}
	return s.openLater()
}

// Ready opens a sandbox of OpenOnFirstUse before its first command. After that, Close also kills the
// orphans of other open sandboxes without AdoptOrphans.
func (s *Sandbox) Ready() error {
	if err := s.ensureOpen(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialize()
}

// openWith opens s with options o.
func (s *Sandbox) openWith(ctx context.Context, o Options) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errClosed
	}
	box, err := Open(ctx, o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = box.Close() // nothing was started in it
		return errClosed
	}
	defer s.mu.Unlock()
	s.AdoptOrphans, s.confinement = box.AdoptOrphans, box.confinement
	return nil
}
