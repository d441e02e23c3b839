package stage

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWait bounds how long the supervisor waits for killed processes to go.
const endWait = 2 * time.Second

// supervisor starts the run's commands and reaps everything below it.
type supervisor struct {
	conn    *conn
	nothing *os.File // /dev/null, open for reading

	mu     sync.Mutex
	more   *sync.Cond     // there may be children to wait for
	groups map[uint64]int // by command; until the outside asks to end it
	ids    map[int]uint64 // of the commands that have not exited
}

// serveCommands serves until the process outside is gone. It stays on the
// calling thread: the parent-death signal of the commands hangs on it.
func serveCommands(c *conn) error {
	unix.CloseOnExec(c.fd)
	if err := protect(); err != nil {
		return err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	s := &supervisor{conn: c, nothing: nothing, groups: make(map[uint64]int), ids: make(map[int]uint64)}
	s.more = sync.NewCond(&s.mu)
	go s.reap()
	if err := c.send(Event{Started: true}); err != nil {
		return err
	}
	err = s.listen()
	s.end()
	return err
}

// protect keeps commands from reading the supervisor's memory and from ending
// it by a signal that the runtime would die of.
func protect() error {
	signal.Notify(make(chan os.Signal, 1)) // all of them; nobody looks
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func (s *supervisor) listen() error {
	for {
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
		if err := s.obey(r, fds); err != nil {
			return err
		}
	}
}

func (s *supervisor) obey(r Request, fds []int) error {
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
		return s.conn.send(Event{ID: r.ID, Error: err.Error()})
	}
	s.groups[r.ID], s.ids[pid] = pid, r.ID
	s.more.Signal()
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
	case len(streams) == MostStreams:
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
			s.mu.Lock()
			for len(s.ids) == 0 {
				s.more.Wait()
			}
			s.mu.Unlock()
		default:
			s.exited(pid, status)
		}
	}
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

// end kills what is left. In a pid namespace the kernel does it when the
// supervisor exits; elsewhere this is the only one who knows them all.
func (s *supervisor) end() {
	s.mu.Lock()
	for _, group := range s.groups {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
	s.mu.Unlock()
	if os.Getpid() != 1 {
		EndChildren(0, endWait)
	}
}
