package sandbox

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

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
