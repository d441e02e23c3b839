package sandbox

import (
	"errors"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// starter starts commands from one thread that lives as long as the sandbox:
// the kernel sends the parent-death signal when the thread that started a
// command ends, and Go ends threads when it likes (golang.org/issue/27505).
type starter struct {
	requests chan startRequest
	ended    chan struct{}
}

type startRequest struct {
	start  func() error
	result chan error
}

func (s *starter) open() {
	s.requests = make(chan startRequest)
	s.ended = make(chan struct{})
	go s.serve()
}

func (s *starter) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(s.ended)
	for request := range s.requests {
		request.result <- request.start()
	}
}

func (s *starter) start(start func() error) error {
	result := make(chan error, 1)
	s.requests <- startRequest{start, result}
	return <-result
}

func (s *starter) stop() {
	if s.requests == nil {
		return
	}
	close(s.requests)
	<-s.ended
	s.requests = nil
}

// awaitExit waits until the process has exited and leaves it unreaped. It is
// false when that can't be done.
func awaitExit(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Linux 3.4; Close finds less without it
}

// reapGroup reaps the adopted members of a group that have died.
func reapGroup(group int) {
	for {
		pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// endOrphans kills and reaps the children of this process that are in another
// session, and then theirs. It returns how many are left after wait.
func endOrphans(wait time.Duration) int {
	session, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return stage.EndChildren(session, wait)
}
