package proc

import (
	"errors"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Attributes returns the attributes of a process in its own session. The process is killed when the
// thread that started it ends.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// Starter starts processes from one thread that lives until Stop. The kernel kills a process with
// Attributes when its thread ends, and Go ends threads at any time (golang.org/issue/27505). The zero
// Starter is not open.
type Starter struct {
	requests chan func()
	ended    chan struct{}
}

// Open starts the thread.
func (s *Starter) Open() {
	s.requests = make(chan func())
	s.ended = make(chan struct{})
	go s.serve()
}

func (s *Starter) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(s.ended)
	for request := range s.requests {
		request()
	}
}

// Start calls start on the thread and returns its error.
func (s *Starter) Start(start func() error) error {
	result := make(chan error, 1)
	s.requests <- func() { result <- start() }
	return <-result
}

// Stop ends the thread, so the kernel kills the processes started on it. It does nothing if s is not
// open.
func (s *Starter) Stop() {
	if s.requests == nil {
		return
	}
	close(s.requests)
	<-s.ended
	s.requests = nil
}

// AwaitExit waits for a process's exit without reaping it, or returns false.
func AwaitExit(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// AdoptOrphans makes this process the parent of orphaned descendants (PR_SET_CHILD_SUBREAPER).
func AdoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it (before Linux 3.4), EndOrphans finds fewer processes
}

// ReapGroup reaps dead adopted members of a group.
func ReapGroup(group int) {
	for {
		pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// EndOrphans kills and reaps the processes that this process inherited when their parents ended: its
// children in other sessions, and then their children. It returns the number left after wait.
func EndOrphans(wait time.Duration) int {
	session, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return stage.EndChildren(session, wait)
}
