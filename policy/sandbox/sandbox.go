// Package sandbox owns how a run's commands are started, confined and ended.
// It knows argv, environment, layers of the kernel and process trees; which files
// commands see and may write is package grants', which calls of the kernel they may
// make package filter's. It knows nothing of tools, models or rules about which
// command may run.
//
// Open finds out by trying what the kernel gives and confines the commands of a
// run with it: namespaces, Landlock, seccomp; Level and Layers say how far it
// came. One process inside, started from the same program (package stage),
// starts all commands of a Sandbox, so that they share /tmp, loopback and each
// other. The zero Sandbox confines nothing: commands run with the rights of the
// user who started agent-ci.
//
// Each command leads a session of its own, so it has no terminal to ask on but the one that it is given.
// What it leaves behind in its process group dies with it. A process that moved
// to another group is ended by Close: in a namespace always, else on Linux and
// with AdoptOrphans only; elsewhere it outlives the run.
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
)

// Sandbox starts the commands of one run. The zero value is ready and confines
// nothing; Open makes one that does. Close ends what it started.
type Sandbox struct {
	// AdoptOrphans makes this process the parent of what commands leave behind,
	// so that Close finds and ends it (Linux; prctl(2), PR_SET_CHILD_SUBREAPER).
	// Close then kills every child of this process that is in another session
	// than its own, so only one Sandbox of a process may be open with it.
	AdoptOrphans bool
	// Unconfined says what the commands are where nothing confines them; nil for those of a run.
	Unconfined *outside.Use

	opened func() error // opens a sandbox of Later, once; nil for others
	confinement

	pausing sync.RWMutex // held while commands are stopped; to read, while one starts

	mu       sync.Mutex
	live     map[*Process]struct{} // nil until the first start
	closed   bool
	close    sync.Once
	closeErr error
}

// confinement is what Open came to; its zero value is none.
type confinement struct {
	inside      *inside       // nil when nothing is confined
	group       *processGroup // of what is inside; may be nil
	starter     starter       // of all commands, confined or not
	level       Level
	layers      []string
	reachesOut  bool // commands have the machine's network
	env         []string
	tree        string         // what Tree says
	stopServing func()         // of the proxy; nil without one
	listeners   []net.Listener // at Options.Ports
	lent        []*os.File     // for others, to read
	lentToWrite []*os.File     // and to change
}

// Level is the confinement that commands get, and Layers what it is made of.
func (s *Sandbox) Level() Level {
	if s.inside == nil {
		return LevelNone
	}
	return s.level
}

// Layers lists the kernel mechanisms in use.
func (s *Sandbox) Layers() []string { return append([]string{}, s.layers...) }

// Command is what to start.
type Command struct {
	Argv []string // Argv[0] is looked up in the PATH of Env
	Dir  string   // absolute
	// Env is all of the environment, NAME=value; none when empty. A confined
	// command sees the sandbox's own TMPDIR, TMP and TEMP besides, and the
	// variables that name its proxy.
	Env []string
	// Output gets standard output and error in the order of writing, from one
	// goroutine. Once it fails, the rest of the output is read and dropped.
	Output io.Writer
	// TTY is the size of the terminal that the command gets as its standard
	// streams and controlling terminal; without one it has pipes, and its
	// standard input is empty.
	TTY Window
	// Streams are what the command gets as its standard streams instead of
	// Output and TTY; nil for others. The caller closes them, after Start if it
	// likes. What can be done with a descriptor, the command can do: pipes are
	// safe to give, folders and files of the outside are not.
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
	// ErrNotStarted wraps what kept a command from starting.
	ErrNotStarted = errors.New("command did not start")
	// errClosed is why a Sandbox starts nothing more.
	errClosed = errors.New("the sandbox is closed")
)

const (
	// drainWait is how long the output of a command that has exited is still
	// read while a process that it left behind holds the pipe: long enough for a
	// process substitution to flush, short enough not to be felt.
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

// Empty kills what is left of all commands and says whether nothing of them
// lives, so that nobody but the caller changes files any more. After Empty
// nothing starts. Close is still to be called: it waits for the kernel to clear
// away what confined them.
func (s *Sandbox) Empty() bool {
	left := s.shut()
	if s.inside == nil || killAll(left) > 0 {
		return false
	}
	return s.inside.drain()
}

// Close kills what is left of all commands and waits for it, at most 5
// seconds. The error says what did not die. After Close nothing starts.
func (s *Sandbox) Close() error {
	s.close.Do(func() { s.closeErr = s.end() })
	return s.closeErr
}

func (s *Sandbox) end() error {
	left := s.shut()
	if left == nil && s.inside == nil {
		return nil // nothing was ever started
	}
	alive := killAll(left)
	if s.inside != nil {
		s.inside.close()
	}
	s.letGo()
	if s.stopServing != nil {
		s.stopServing()
	}
	s.starter.stop()
	if s.AdoptOrphans {
		alive += endOrphans(closeWait)
	}
	s.group.remove()
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

// shut marks s as closed and returns what still runs, nil when nothing was
// ever started.
func (s *Sandbox) shut() []*Process {
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
	s.begin()
	s.live[p] = struct{}{}
	return nil
}

// begin makes s ready for its first process. s.mu is held.
func (s *Sandbox) begin() {
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
	hideDescriptors()
	if s.AdoptOrphans {
		adoptOrphans()
	}
	s.starter.open()
}

func (s *Sandbox) remove(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, p)
}

// Later is a sandbox that is opened at its first command, under ctx: a run
// that starts none need not pay for it. What Open would refuse is then the
// error of Start, and the next command tries again; who must know before asks
// Probe.
func Later(ctx context.Context, o Options) *Sandbox {
	s := new(Sandbox)
	var one sync.Mutex
	open := false
	s.opened = func() error {
		one.Lock()
		defer one.Unlock()
		if open {
			return nil
		}
		err := s.become(ctx, o)
		open = err == nil
		return err
	}
	return s
}

// Ready opens a sandbox of Later before its first command. Behind it Close ends what others left
// that are open beside this one and adopt no orphans, though no command is ever started here.
func (s *Sandbox) Ready() error {
	if s.opened != nil {
		if err := s.opened(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.begin()
	return nil
}

// become makes s the sandbox that o describes.
func (s *Sandbox) become(ctx context.Context, o Options) error {
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
