package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// EndChildren kills and reaps the children of this process that are in another
// session than spared, and then theirs, which become children by it where this
// process adopts orphans. It returns how many are left after wait.
func EndChildren(spared int, wait time.Duration) int {
	deadline := time.Now().Add(wait)
	for {
		found := children(spared)
		if len(found) == 0 || time.Now().After(deadline) {
			return len(found)
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL) // a child that nobody has reaped keeps its id
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		time.Sleep(time.Millisecond)
	}
}

func children(spared int) []int {
	self := os.Getpid()
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		if parent, session := parentAndSession(stat); parent == self && session != spared {
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
