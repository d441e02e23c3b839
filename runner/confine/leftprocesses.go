package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/record"
)

// EndProcesses kills what the commands of a run that was killed left running: they
// have the run's folder of programs on their PATH.
func EndProcesses(rec *record.Record) {
	mark := rec.Join(ProgramsFolder)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // no such thing here; they died with the run or stay
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
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
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
