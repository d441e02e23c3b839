package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// endLeftovers kills what the commands of the killed run left running: they
// have its folder of programs on their PATH.
func (r *run) endLeftovers(context.Context) error {
	mark := r.rec.Join(programsFolder)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // no such thing here; they died with the run or stay
	}
	for _, entry := range entries {
		pid, isProcess := processID(entry.Name())
		if !isProcess || pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // of another user, or gone
		}
		if ofRun(strings.Split(string(raw), "\x00"), mark) {
			endProcess(pid)
		}
	}
	return nil
}

func ofRun(env []string, folder string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		path, ok := strings.CutPrefix(variable, "PATH=")
		return ok && slices.Contains(filepath.SplitList(path), folder)
	})
}

// processID is the process that a name in /proc stands for.
func processID(name string) (int, bool) {
	pid, err := strconv.Atoi(name)
	return pid, err == nil && pid > 1
}

func endProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
