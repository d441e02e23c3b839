package confine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/record"
)

// KillLeftovers kills the commands that a killed run left running, and waits until their sandboxes
// end. A layer can be mounted only once.
func KillLeftovers(ctx context.Context, d *record.Directory) error {
	killLeftProcesses(d.Join(ProgramsFolder))
	overlays, _ := fs.Glob(d.Root().FS(), ScratchFolder+"/*/"+overlayFolder)
	for _, name := range overlays {
		if err := layer.AwaitUnmounted(ctx, d.Join(name)); err != nil {
			return openFailure(sandbox.Options{}, err)
		}
	}
	return nil
}

// killLeftProcesses kills the remaining commands of a killed run. It recognises them by the run's
// programs folder on their PATH. Without /proc it does nothing.
func killLeftProcesses(programs string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue // not a process, or not one of the run
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && belongsToRun(strings.Split(string(raw), "\x00"), programs) { // an unreadable process has ended or belongs to another user
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func belongsToRun(env []string, programs string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		path, is := strings.CutPrefix(variable, "PATH=")
		return is && slices.Contains(filepath.SplitList(path), programs)
	})
}
