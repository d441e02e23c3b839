package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
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
// session, and then theirs, which become children by it. It returns how many
// are left after wait.
func endOrphans(wait time.Duration) int {
	deadline := time.Now().Add(wait)
	for {
		orphans := orphans()
		if len(orphans) == 0 || time.Now().After(deadline) {
			return len(orphans)
		}
		for _, pid := range orphans {
			_ = unix.Kill(pid, unix.SIGKILL) // a child that nobody has reaped keeps its id
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}

func orphans() []int {
	session, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	self := os.Getpid()
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		if parent, its := parentAndSession(stat); parent == self && its != session {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, pid)
		}
	}
	return found
}

// parentAndSession reads the fields 4 and 6 of proc_pid_stat(5). The name in
// field 2 may hold anything, a closing parenthesis too.
func parentAndSession(stat []byte) (parent, session int) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	session, _ = strconv.Atoi(string(fields[3]))
	return parent, session
}
