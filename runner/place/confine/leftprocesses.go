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

// KillLeftovers kills a killed run's remaining commands and waits for its sandboxes, since a layer can
// only be mounted once.
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

// killLeftProcesses kills a killed run's remaining commands, which have its programs folder on their
// PATH. Without /proc they died with the run, or stay.
func killLeftProcesses(programs string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue // no process, or none of the run's
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && belongsToRun(strings.Split(string(raw), "\x00"), programs) { // else it is of another user, or gone
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
