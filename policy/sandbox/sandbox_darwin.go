package sandbox

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// supervisorConn replaces Linux's supervisor.
type supervisorConn struct{}

func (*supervisorConn) child(Command) child { return nil }
func (*supervisorConn) endAll() bool        { return true }
func (*supervisorConn) close()              {}

func (*confinement) stop() (resume func() error, err error) {
	return nil, errors.New("this system has nothing to stop them with")
}

func onMountOf(*os.File, string) bool { return true }

// processGroup replaces Linux's cgroup.
type processGroup struct{}

func (*processGroup) remove() {}

// Conceal does nothing here: the system shows the environment of a process to its user.
func Conceal() {}

// EarlyProcess replaces Linux's begun process.
type EarlyProcess struct{}

// StartEarly starts nothing here.
func StartEarly(Network) *EarlyProcess { return nil }

// End ends nothing here.
func (*EarlyProcess) End() {}

// Open returns an unconfined Sandbox for DangerFullAccess. Otherwise it fails: macOS has no
// confinement.
func Open(_ context.Context, o Options) (*Sandbox, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Mode == grants.DangerFullAccess {
		return openUnconfined(o)
	}
	return nil, &UnavailableError{
		Reached: LevelNone, Asked: o.Require, Missing: []string{"this system has neither namespaces nor Landlock"},
		Remedy: "Run on Linux, or without confinement by policy.sandbox: danger-full-access.",
	}
}

// Kernel returns the kernel's release, which is irrelevant here.
func Kernel() string { return "" }

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

type threadStarter struct{}

func (threadStarter) open()                          {}
func (threadStarter) start(start func() error) error { return start() }
func (threadStarter) stop()                          {}

func adoptOrphans()                {}
func reapGroup(int)                {}
func endOrphans(time.Duration) int { return 0 }

// awaitExit waits for the process's exit without reaping it, or returns false. waitid(2) is useless
// here: on Darwin it also returns for a stopped process (golang.org/issue/19314).
func awaitExit(pid int) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)
	exit := make([]unix.Kevent_t, 1)
	exit[0].Fflags = unix.NOTE_EXIT
	unix.SetKevent(&exit[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	events := make([]unix.Kevent_t, 1)
	for {
		_, err := unix.Kevent(queue, exit, events, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		case events[0].Flags&unix.EV_ERROR != 0: // ESRCH: it has exited before
			return events[0].Data == int64(unix.ESRCH)
		default:
			return true
		}
	}
}
