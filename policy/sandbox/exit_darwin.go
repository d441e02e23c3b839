package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit waits until the process has exited and leaves it unreaped. It is
// false when that can't be done. waitid(2) is no help here: on Darwin it
// returns for a stopped process too (golang.org/issue/19314).
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
