package proc

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Attributes starts a process in its own session.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

// Starter starts processes from any thread here.
type Starter struct{}

// Open does nothing here.
func (Starter) Open() {}

// Start calls start.
func (Starter) Start(start func() error) error { return start() }

// Stop does nothing here.
func (Starter) Stop() {}

// Group replaces Linux's cgroup.
type Group struct{}

// Remove does nothing here.
func (*Group) Remove() {}

// Conceal does nothing here: the system shows the environment of a process to its user.
func Conceal() {}

// AdoptOrphans does nothing here: the system gives orphans to its first process.
func AdoptOrphans() {}

// ReapGroup does nothing here: this process adopts nobody.
func ReapGroup(int) {}

// EndOrphans does nothing here: this process adopts nobody.
func EndOrphans(time.Duration) int { return 0 }

// AwaitExit waits for the process's exit without reaping it, or returns false. waitid(2) is useless
// here: on Darwin it also returns for a stopped process (golang.org/issue/19314).
func AwaitExit(pid int) bool {
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
