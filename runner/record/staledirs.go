package record

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// CommandFolders is how the working files of a command that is no run's are named:
// this and an id.
const CommandFolders = "sandbox-"

// newestStale is how old they have to be to count as left: who makes a folder
// locks it a moment later.
const newestStale = time.Minute

// RemoveStale removes what killed commands left of their working files in
// folder. What can't be removed stays: the next one tries again.
func RemoveStale(folder string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), CommandFolders)
		if ok && e.IsDir() && begunBefore(id, now.Add(-newestStale)) {
			removeUnlessHeld(filepath.Join(folder, e.Name()))
		}
	}
}

// begunBefore reads the time in the id of a run.
func begunBefore(id string, moment time.Time) bool {
	stamp, _, _ := strings.Cut(id, "-")
	began, err := time.Parse(idTime, stamp)
	return err == nil && began.Before(moment)
}

func removeUnlessHeld(path string) {
	d := &Directory{path: path}
	if d.Lock() != nil {
		return
	}
	defer d.held.Close()
	_ = sandbox.RemoveScratch(path)
}
