package sandbox

import (
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// supervisor is the process inside the sandbox that starts commands. syscall.ForkExec starts it, because
// package os would first start another process to probe pidfds.
type supervisor struct {
	pid       int
	errorPipe *os.File // contains the process's message after a failure

	mu     sync.Mutex
	reaped bool // the pid may belong to another process

	watch sync.WaitGroup // of watchStopped
}

// maxErrorBytes bounds the message of a failed supervisor, in bytes.
const maxErrorBytes = 500

// startSupervisor starts the supervisor. control is the supervisor's end of the control socket.
func startSupervisor(control *os.File, attributes *syscall.SysProcAttr) (*supervisor, error) {
	devNull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer devNull.Close()
	errorPipe, childEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childEnd.Close()
	const program = "/proc/self/exe"
	env := []string{"GOMAXPROCS=1"} // makes Go's runtime start faster; the process waits most of the time
	if err := outside.Stage.CheckStart(program, outside.Root, env); err != nil {
		errorPipe.Close()
		return nil, err
	}
	pid, err := syscall.ForkExec(program, []string{stage.Name}, &syscall.ProcAttr{
		Dir: outside.Root, Sys: attributes, Env: env,
		Files: []uintptr{devNull.Fd(), devNull.Fd(), childEnd.Fd(), stage.ControlFD: control.Fd()},
	})
	if err != nil {
		errorPipe.Close()
		return nil, err
	}
	return &supervisor{pid: pid, errorPipe: errorPipe}, nil
}

func (s *supervisor) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		_ = unix.Kill(s.pid, unix.SIGKILL)
	}
}

// watchStopped calls onStop if the process is stopped. Commands can do that (SIGSTOP) if it is not the
// first process of their pid namespace.
func (s *supervisor) watchStopped(onStop func()) {
	s.watch.Go(func() {
		var info unix.Siginfo
		for {
			err := unix.Waitid(unix.P_PID, s.pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
			switch {
			case err == unix.EINTR:
				continue
			case err == nil && info.Code == codeStopped:
				onStop()
			}
			return
		}
	})
}

// codeStopped reports a stopped process (CLD_STOPPED, sigaction(2)).
const codeStopped = 5

// wait waits until the process exits, and reaps it.
func (s *supervisor) wait() {
	defer s.watch.Wait()
	proc.AwaitExit(s.pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reaped {
		return
	}
	s.reaped = true
	for {
		if _, err := unix.Wait4(s.pid, nil, 0, nil); err != unix.EINTR {
			break
		}
	}
	_ = s.errorPipe.Close()
}

// readError waits for the process's end and returns its last message.
func (s *supervisor) readError() string {
	message, _ := io.ReadAll(io.LimitReader(s.errorPipe, maxErrorBytes))
	s.wait()
	return string(message)
}
