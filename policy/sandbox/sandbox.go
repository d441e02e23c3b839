// Package sandbox starts, confines and ends a run's commands. It knows argv, environment, kernel
// layers and process trees. Package grants decides about files, package filter about system calls.
// It knows nothing of tools, models or rules for commands.
//
// Open tries the kernel's means and confines the commands with them: namespaces, Landlock, seccomp. Level and Layers
// describe the result. One process inside, started from this program (package stage), starts all commands of a
// Sandbox, so they share /tmp and loopback. The zero Sandbox confines nothing: commands have the rights of
// agent-ci's user.
//
// Each command leads its own session, without a terminal except a given one. The rest of its process group dies with
// it. Close ends processes in other groups: always with namespaces, otherwise on Linux with AdoptOrphans. Elsewhere
// they outlive the run.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// Sandbox starts the commands of one run. The zero value is ready and confines nothing. Close ends
// its commands.
type Sandbox struct {
	// AdoptOrphans makes this process the parent of orphaned commands, for Close to end them
	// (Linux; prctl(2), PR_SET_CHILD_SUBREAPER). Close then kills every child of this process in
	// another session, so only one such Sandbox may be open.
	AdoptOrphans bool
	// Unconfined describes unconfined commands; nil means those of a run.
	Unconfined *outside.Use

	openLater func() error // opens a sandbox of OpenOnFirstUse, once; nil for others
	confinement

	pausing sync.RWMutex // held while commands are stopped; to read, while one starts

	mu       sync.Mutex
	live     map[*Process]struct{} // nil until the first start
	closed   bool
	close    sync.Once
	closeErr error
}

// confinement is the result of Open; zero is none.
type confinement struct {
	inside            *supervisorConn // nil when nothing is confined
	group             *proc.Group     // of what is inside; may be nil
	starter           proc.Starter    // of all commands, confined or not
	level             Level
	layers            []string
	hasMachineNetwork bool // commands have the machine's network
	env               []string
	tree              string         // path of the overlaid workspace, or ""
	stopServing       func()         // of the proxy; nil without one
	listeners         []net.Listener // at Options.Ports
	readLoans         []*os.File     // mounts of the workspace for other sandboxes, read-only
	writeLoans        []*os.File     // the same, writable
}

// Level returns how far commands are confined.
func (s *Sandbox) Level() Level {
	if s.inside == nil {
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

// Status is how a command ended.
type Status struct {
	ExitCode int    // 128+n when signal n ended it
	Signal   string // name of that signal
}

var (
	// ErrNotStarted wraps the reason of a failed start.
	ErrNotStarted = errors.New("command did not start")
	// errClosed is why a Sandbox starts nothing more.
	errClosed = errors.New("the sandbox is closed")
)

const (
	// drainWait bounds reading from an exited command whose leftover process holds the pipe: long
	// enough for a process substitution to flush, short enough to go unnoticed.
	drainWait = 100 * time.Millisecond
	// closeWait bounds how long Close waits for killed processes to go.
	closeWait = 30 * time.Second
)

// Run starts c and waits for it. When ctx ends first, the command's process
// group is killed and ctx's error returned with the status.
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

// KillAll kills all commands and reports whether none lives. Afterwards only the caller changes
// files, and nothing starts. Close is still required, and waits for the kernel's cleanup.
func (s *Sandbox) KillAll() bool {
	left := s.markClosed()
	if s.inside == nil || killAll(left) > 0 {
		return false
	}
	return s.inside.endAll()
}

// Close kills all commands and waits up to 30 seconds for their end. The error counts the survivors.
// Nothing starts afterwards.
func (s *Sandbox) Close() error {
	s.close.Do(func() { s.closeErr = s.closeAll() })
	return s.closeErr
}

// closeAll is Close, once.
func (s *Sandbox) closeAll() error {
	left := s.markClosed()
	if left == nil && s.inside == nil {
		return nil // nothing was ever started
	}
	alive := killAll(left)
	if s.inside != nil {
		s.inside.close()
	}
	s.closeLeftovers()
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
func killAll(processes []*Process) (alive int) {
	for _, p := range processes {
		p.Kill()
	}
	patience, stop := context.WithTimeout(context.Background(), closeWait)
	defer stop()
	for _, p := range processes {
		select {
		case <-p.Done():
		case <-patience.Done():
			alive++
		}
	}
	return alive
}

// markClosed marks s as closed and returns running commands, or nil if nothing was ever started.
func (s *Sandbox) markClosed() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.live == nil {
		return nil
	}
	left := make([]*Process, 0, len(s.live))
	for p := range s.live {
		left = append(left, p)
	}
	return left
}

// add makes Close know p. It fails when s is closed.
func (s *Sandbox) add(p *Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.initialize()
	s.live[p] = struct{}{}
	return nil
}

// initialize makes s ready for its first process. s.mu is held.
func (s *Sandbox) initialize() {
	if s.live != nil {
		return
	}
	s.live = make(map[*Process]struct{})
	if s.inside == nil {
		s.open()
	}
}

// open makes this process ready to start commands.
func (s *Sandbox) open() {
	proc.HideDescriptors()
	if s.AdoptOrphans {
		proc.AdoptOrphans()
	}
	s.starter.Open()
}

func (s *Sandbox) remove(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, p)
}

// OpenOnFirstUse returns a sandbox that opens at its first command, under ctx, so runs without commands save
// the cost. An error of Open becomes that of Start, and the next command tries again. Use Probe to
// know earlier.
func OpenOnFirstUse(ctx context.Context, o Options) *Sandbox {
	s := new(Sandbox)
	var one sync.Mutex
	open := false
	s.openLater = func() error {
		one.Lock()
		defer one.Unlock()
		if open {
			return nil
		}
		err := s.openWith(ctx, o)
		open = err == nil
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

// Ready opens a sandbox of OpenOnFirstUse before its first command. From then on, Close also ends orphans
// of other open sandboxes that adopt none.
func (s *Sandbox) Ready() error {
	if err := s.ensureOpen(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.initialize()
	return nil
}

// openWith opens s with options o.
func (s *Sandbox) openWith(ctx context.Context, o Options) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errClosed
	}
	opened, err := Open(ctx, o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = opened.Close() // nothing was started in it
		return errClosed
	}
	defer s.mu.Unlock()
	s.AdoptOrphans, s.confinement = opened.AdoptOrphans, opened.confinement
	return nil
}
