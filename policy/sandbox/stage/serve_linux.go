package stage

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// endWait bounds how long the supervisor waits for killed processes to go.
const endWait = 2 * time.Second

// supervisor starts the run's commands and reaps everything below it.
type supervisor struct {
	conn    *conn
	setids  setids
	nothing *os.File // /dev/null, open for reading

	empty chan struct{} // closed when the last child is reaped, after ending

	mu     sync.Mutex
	ending bool
	wake   *sync.Cond     // signals new children, or the end
	groups map[uint64]int // by command; until the outside asks to end it
	ids    map[int]uint64 // of the commands that have not exited
}

// serveCommands serves until the process outside is gone. It stays on the
// calling thread: the parent-death signal of the commands hangs on it.
func serveCommands(c *conn, asked setids) error {
	if err := protect(); err != nil {
		return err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	s := &supervisor{conn: c, setids: asked, nothing: nothing, empty: make(chan struct{}), groups: make(map[uint64]int), ids: make(map[int]uint64)}
	s.wake = sync.NewCond(&s.mu)
	go s.reap()
	if err := c.send(Event{Started: true}); err != nil {
		return err
	}
	err = s.listen()
	s.end()
	return err
}

// The signals that would end or stop the supervisor when a command sends them by
// kill. The others Go's runtime drops.
var (
	deadly = []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV,
		unix.SIGTERM, unix.SIGSTKFLT, unix.SIGSYS,
	}
	stopping = []os.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} // never the first process of a pid namespace
	threads  = []os.Signal{unix.Signal(32), unix.Signal(34)}         // deadly, too; Go leaves them to C libraries
)

// surviveSignals makes commands unable to end the process by signals. The first one of a
// pid namespace ignores them: a fault of its own ends it all the same. Another
// one takes the signals, and nobody looks at them; a fault that is made up by
// sigqueue it takes for its own, and ends: so ends the sandbox of whoever sent it.
// Each signal costs the runtime two changes of threads then, so it is done while
// others work; the channel is closed when it is.
func surviveSignals() <-chan struct{} {
	done := make(chan struct{})
	if os.Getpid() == 1 {
		ignore(slices.Concat(deadly, threads))
		close(done)
		return done
	}
	go func() {
		defer close(done)
		signal.Notify(make(chan os.Signal, 1), slices.Concat(deadly, stopping)...)
	}()
	return done
}

// ignore ignores signals behind the back of Go's runtime, which goes on resetting
// them in what is executed. Leaving them unhandled would not do: a signal of that
// kind is not sent to the first process of a pid namespace (pid_namespaces(7)), but
// while one of its threads blocks it, as Go does around fork, Linux has it
// end the whole process by way of the other threads.
func ignore(signals []os.Signal) {
	const setSize = 8        // of a set of signals: on all systems that Go knows but MIPS
	ignored := [8]uintptr{1} // a struct sigaction whose handler is SIG_IGN; larger than any
	for _, s := range signals {
		number := uintptr(s.(unix.Signal))
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&ignored)), 0, setSize, 0, 0)
	}
}

// protect keeps commands from reading the supervisor's memory, and it the parent
// of whom their own leave behind.
func protect() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func (s *supervisor) listen() error {
	for {
		s.awaitRequest()
		body, fds, err := s.conn.receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var r Request
		if err := json.Unmarshal(body, &r); err != nil {
			return err
		}
		if err := s.handleRequest(r, fds); err != nil {
			return err
		}
	}
}

// awaitRequest answers for the kernel until there is a request.
func (s *supervisor) awaitRequest() {
	for {
		from := []unix.PollFd{{Fd: int32(s.conn.fd), Events: unix.POLLIN}, {Fd: int32(s.setids.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(from, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if from[1].Revents != 0 {
			s.setids.answer()
		}
		if from[1].Revents == 0 || from[0].Revents != 0 {
			return
		}
	}
}

func (s *supervisor) handleRequest(r Request, fds []int) error {
	for _, fd := range fds {
		defer unix.Close(fd)
	}
	switch {
	case r.Start != nil:
		return s.start(*r.Start, fds)
	case r.Signal != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		if group, ok := s.groups[r.Signal.ID]; ok {
			_ = unix.Kill(-group, unix.Signal(r.Signal.Number)) // ESRCH: nobody is left
		}
	case r.End != 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if group, ok := s.groups[r.End]; ok {
			_ = unix.Kill(-group, unix.SIGKILL)
			delete(s.groups, r.End)
		}
	case r.Pause:
		event := Event{Paused: true}
		if err := pause(); err != nil {
			event.Error = err.Error()
		}
		return s.conn.send(event)
	case r.Resume:
		resume()
	case r.Socket:
		return s.conn.sendSocket()
	}
	return nil
}

// start starts a command and tells whether it did. The lock is held until both
// are done, so that the reaper knows whom it reaps and tells of it afterwards.
func (s *supervisor) start(r Start, streams []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.fork(r, streams)
	if err != nil {
		return s.conn.send(Event{ID: r.ID, Error: err.Error(), Missing: errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)})
	}
	s.groups[r.ID], s.ids[pid] = pid, r.ID
	s.wake.Signal()
	return s.conn.send(Event{ID: r.ID, Started: true})
}

func (s *supervisor) fork(r Start, streams []int) (pid int, err error) {
	argv, env := texts(r.Argv), texts(r.Env)
	files := s.files(r, streams)
	if len(argv) == 0 || files == nil {
		return 0, errors.New("the request is not complete")
	}
	path, err := LookPath(argv[0], r.Dir, env)
	if err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: r.Dir, Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: r.Terminal, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, &os.PathError{Op: "fork/exec", Path: path, Err: err}
	}
	return pid, nil
}

// files are the standard streams of a command, nil when too few were passed.
func (s *supervisor) files(r Start, streams []int) []uintptr {
	switch {
	case len(streams) == maxStreams:
		return []uintptr{uintptr(streams[0]), uintptr(streams[1]), uintptr(streams[2])}
	case len(streams) != 1:
		return nil
	case r.Terminal:
		return []uintptr{uintptr(streams[0]), uintptr(streams[0]), uintptr(streams[0])}
	}
	return []uintptr{s.nothing.Fd(), uintptr(streams[0]), uintptr(streams[0])}
}

func texts(raw [][]byte) []string {
	all := make([]string, len(raw))
	for i, b := range raw {
		all[i] = string(b)
	}
	return all
}

// reap waits for every child there is or comes, and tells of the commands among
// them. A command's number may be used again once it is reaped, but as long as
// a process of its group lives that can't be the number of another group.
func (s *supervisor) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD: nobody is there who could leave orphans, either
			if s.idle() {
				close(s.empty)
				return
			}
		default:
			s.exited(pid, status)
		}
	}
}

// idle waits until there may be children again. It is true when there will be
// none.
func (s *supervisor) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ids) == 0 && !s.ending {
		s.wake.Wait()
	}
	return len(s.ids) == 0
}

func (s *supervisor) exited(pid int, status unix.WaitStatus) {
	s.mu.Lock()
	id, ok := s.ids[pid]
	delete(s.ids, pid)
	s.mu.Unlock()
	if ok {
		_ = s.conn.send(Event{ID: id, Exited: true, Status: uint32(status)}) // EPIPE: nobody wants to know
	}
}

// end kills what is left, and tells when nothing of it lives.
func (s *supervisor) end() {
	s.mu.Lock()
	s.ending = true
	for _, group := range s.groups {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
	s.wake.Signal()
	s.mu.Unlock()
	if os.Getpid() != 1 { // the only one who knows them all
		EndChildren(0, endWait)
		return
	}
	_ = unix.Kill(-1, unix.SIGKILL) // all of the namespace but this process
	patience := time.NewTimer(endWait)
	defer patience.Stop()
	select {
	case <-s.empty:
		_ = s.conn.send(Event{Empty: true}) // EPIPE: nobody wants to know
	case <-patience.C: // the kernel goes on when this process exits
	}
}

// EndChildren kills and reaps the children of this process that are in another
// session than spared, and then theirs, which become children by it where this
// process adopts orphans. It returns how many are left after wait.
func EndChildren(spared int, wait time.Duration) int {
	deadline := time.Now().Add(wait)
	for {
		found := children(spared)
		if len(found) == 0 || time.Now().After(deadline) {
			return len(found)
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL) // a child that nobody has reaped keeps its id
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}

// children returns the numbers of this process's children outside of the spared session.
func children(spared int) []int {
	var found []int
	for _, p := range processes() {
		if p.parent == os.Getpid() && p.session != spared {
			found = append(found, p.pid)
		}
	}
	return found
}
