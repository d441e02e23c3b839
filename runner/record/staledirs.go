package record

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// CommandFolderPrefix is the prefix of folders for a person's sandboxed commands. An id follows.
const CommandFolderPrefix = "sandbox-"

// minStaleAge is how old a folder must be to count as abandoned. A process locks its folder a
// moment after it made the folder.
const minStaleAge = time.Minute

// RemoveStale removes the folders of killed sandboxed commands. It ignores errors; the next call tries again.
func RemoveStale(folder string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), CommandFolderPrefix)
		if began := StartTime(id); ok && e.IsDir() && !began.IsZero() && now.Sub(began) > minStaleAge {
			removeUnlessLocked(filepath.Join(folder, e.Name()))
		}
	}
}

// StartTime returns the time in a run's id, or the zero time for a name that is no id.
func StartTime(id string) time.Time {
	stamp, _, _ := strings.Cut(id, "-")
	began, _ := time.Parse(idTime, stamp)
	return began
}

// removeUnlessLocked removes a folder in which no process works.
func removeUnlessLocked(path string) {
	d := &Directory{path: path}
	if d.Lock() != nil {
		return
	}
	defer d.lockFile.Close()
	_ = sandbox.RemoveScratch(path)
}
