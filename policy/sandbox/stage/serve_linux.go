package stage

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// killWait bounds how long the supervisor waits until killed processes have exited.
const killWait = 2 * time.Second

// supervisor starts the run's commands and reaps everything below it.
type supervisor struct {
	conn         *conn
	setidWatcher setidWatcher
	devNull      *os.File // /dev/null, open for reading

	allReaped chan struct{} // closed when the last child is reaped, after ending

	mu             sync.Mutex
	ending         bool
	wake           *sync.Cond     // signals new children, or the end
	groupByCommand map[uint64]int // process groups by command id, until Request.End
	commandByPID   map[int]uint64 // command ids by pid, until the command exits
}

// serveCommands serves requests until the process outside has exited. It must run on a locked thread,
// because the end of the thread kills the commands.
func serveCommands(c *conn, watcher setidWatcher) error {
	if err := hideMemoryAndAdopt(); err != nil {
		return err
	}
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	s := &supervisor{conn: c, setidWatcher: watcher, devNull: devNull, allReaped: make(chan struct{}), groupByCommand: make(map[uint64]int), commandByPID: make(map[int]uint64)}
	s.wake = sync.NewCond(&s.mu)
	go s.reapChildren()
	if err := c.send(Event{Started: true}); err != nil {
		return err
	}
	err = s.listen()
	s.killAll()
	return err
}

// Signals with which a command could kill or stop the supervisor. Go's runtime ignores all others.
var (
	deadlySignals = []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV,
		unix.SIGTERM, unix.SIGSTKFLT, unix.SIGSYS,
	}
	stoppingSignals = []os.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} // the kernel does not stop the first process of a pid namespace
	threadSignals   = []os.Signal{unix.Signal(32), unix.Signal(34)}         // deadly as well; Go leaves them to C libraries
)

// surviveSignals prevents commands from killing this process with signals. It closes the channel when it
// is done.
//
// The first process of a pid namespace ignores the signals; a fault of its own still kills it. Any other
// process catches them and drops them. It is still killed by a fault that a command fakes with
// sigqueue(3), but that only ends the command's own sandbox. Catching is slow, since Go's runtime changes
// threads twice for each signal, so it runs in parallel.
func surviveSignals() <-chan struct{} {
	done := make(chan struct{})
	if os.Getpid() == 1 {
		ignore(slices.Concat(deadlySignals, threadSignals))
		close(done)
		return done
	}
	go func() {
		defer close(done)
		signal.Notify(make(chan os.Signal, 1), slices.Concat(deadlySignals, stoppingSignals)...)
	}()
	return done
}

// ignore makes the kernel ignore signals, without the knowledge of Go's runtime. The runtime still resets
// them in executed programs. Default handling is not enough. The kernel usually drops such a signal for
// the first process of a pid namespace (pid_namespaces(7)). But while a thread blocks the signal, as Go
// does around fork, the kernel keeps the signal, and it then kills the process.
func ignore(signals []os.Signal) {
	const setSize = 8        // bytes of a signal set, on all processors except MIPS
	ignored := [8]uintptr{1} // a struct sigaction with the handler SIG_IGN (1); large enough for all processors
	for _, s := range signals {
		number := uintptr(s.(unix.Signal))
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&ignored)), 0, setSize, 0, 0)
	}
}

// hideMemoryAndAdopt keeps commands from reading the supervisor's memory, and makes the supervisor the parent of orphans.
func hideMemoryAndAdopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// listen handles requests until the process outside has exited.
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

// awaitRequest waits for a request. Meanwhile it answers the calls that the seccomp filter reports.
func (s *supervisor) awaitRequest() {
	for {
		polled := []unix.PollFd{{Fd: ControlFD, Events: unix.POLLIN}, {Fd: int32(s.setidWatcher.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(polled, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		hasRequest, hasReport := polled[0].Revents != 0, polled[1].Revents != 0
		if hasReport {
			s.setidWatcher.answer()
		}
		if hasRequest || !hasReport {
			return
		}
	}
}

// handleRequest handles a request with its descriptors, and closes them.
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
		if group, ok := s.groupByCommand[r.Signal.ID]; ok {
			_ = unix.Kill(-group, unix.Signal(r.Signal.Number)) // it only fails if the group is empty (ESRCH)
		}
	case r.End != 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if group, ok := s.groupByCommand[r.End]; ok {
			_ = unix.Kill(-group, unix.SIGKILL)
			delete(s.groupByCommand, r.End)
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

// start starts a command and reports the result. It holds the lock until then, so that reapChildren reports the
// command's exit after its start.
func (s *supervisor) start(r Start, streams []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.fork(r, streams)
	if err != nil {
		return s.conn.send(Event{ID: r.ID, Error: err.Error(), Missing: errors.Is(err, notFound{}) || errors.Is(err, fs.ErrNotExist)})
	}
	s.groupByCommand[r.ID], s.commandByPID[pid] = pid, r.ID
	s.wake.Signal()
	return s.conn.send(Event{ID: r.ID, Started: true})
}

// fork starts a command in its own session.
func (s *supervisor) fork(r Start, streams []int) (pid int, err error) {
	argv, env := toStrings(r.Argv), toStrings(r.Env)
	files := s.standardStreams(r, streams)
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

// standardStreams returns the standard streams of a command, or nil for a wrong number of descriptors.
func (s *supervisor) standardStreams(r Start, streams []int) []uintptr {
	switch {
	case len(streams) == maxStreams:
		return []uintptr{uintptr(streams[0]), uintptr(streams[1]), uintptr(streams[2])}
	case len(streams) != 1:
		return nil
	case r.Terminal:
		return []uintptr{uintptr(streams[0]), uintptr(streams[0]), uintptr(streams[0])}
	}
	return []uintptr{s.devNull.Fd(), uintptr(streams[0]), uintptr(streams[0])}
}

func toStrings(raw [][]byte) []string {
	all := make([]string, len(raw))
	for i, b := range raw {
		all[i] = string(b)
	}
	return all
}

// reapChildren reaps all children until the supervisor ends, and reports the exits of commands. The kernel may
// then reuse a command's pid. But it does not reuse the number of a group while a process of the group
// lives.
func (s *supervisor) reapChildren() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR): // wait again
		case err != nil: // ECHILD: there are no children, and so no future orphans
			if s.awaitChildOrEnd() {
				close(s.allReaped)
				return
			}
		default:
			s.reportExit(pid, status)
		}
	}
}

// awaitChildOrEnd waits until a command has been started or the supervisor ends. It reports whether there will be no
// more children.
func (s *supervisor) awaitChildOrEnd() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.commandByPID) == 0 && !s.ending {
		s.wake.Wait()
	}
	return len(s.commandByPID) == 0
}

// reportExit reports the exit of a reaped child if it was a command.
func (s *supervisor) reportExit(pid int, status unix.WaitStatus) {
	s.mu.Lock()
	id, ok := s.commandByPID[pid]
	delete(s.commandByPID, pid)
	s.mu.Unlock()
	if ok {
		_ = s.conn.send(Event{ID: id, Exited: true, Status: uint32(status)}) // it fails if the process outside has exited
	}
}

// killAll kills all remaining processes, and reports when none lives.
func (s *supervisor) killAll() {
	s.mu.Lock()
	s.ending = true
	for _, group := range s.groupByCommand {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
	s.wake.Signal()
	s.mu.Unlock()
	if os.Getpid() != 1 { // only the first process of a pid namespace can kill all others at once
		EndChildren(0, killWait)
		return
	}
	_ = unix.Kill(-1, unix.SIGKILL) // all of the namespace but this process
	select {
	case <-s.allReaped:
		_ = s.conn.send(Event{Empty: true}) // it fails if the process outside has exited
	case <-time.After(killWait): // the kernel kills them when this process exits
	}
}

// EndChildren kills and reaps the children of this process, except those in the session spared. If this
// process adopts orphans, it also kills their children. It returns the number of children left after
// wait.
func EndChildren(spared int, wait time.Duration) int {
	deadline := time.Now().Add(wait)
	for {
		left := children(spared)
		if len(left) == 0 || time.Now().After(deadline) {
			return len(left)
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // the pid is still the child's, since only this process reaps it
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}

// children returns the pids of this process's children that are not in the session spared.
func children(spared int) []int {
	var found []int
	// Most often there are none. The kernel then says so faster than it lists all processes of the machine.
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil); errors.Is(err, unix.ECHILD) {
		return nil
	}
	for _, p := range processes() {
		if p.parent == os.Getpid() && p.session != spared {
			found = append(found, p.pid)
		}
	}
	return found
}
