package record

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// CommandFolders begins the names of the folders that have the working files of a
// sandbox for a person's command. An id follows.
const CommandFolders = "sandbox-"

// newestStale is how old a folder has to be to count as left behind: who makes one
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

// begunBefore says whether the time in an id is before a moment.
func begunBefore(id string, moment time.Time) bool {
	began := Began(id)
	return !began.IsZero() && began.Before(moment)
}

// Began is the time in the id of a run; zero where that is none.
func Began(id string) time.Time {
	stamp, _, _ := strings.Cut(id, "-")
	began, _ := time.Parse(idTime, stamp)
	return began
}

func removeUnlessHeld(path string) {
	d := &Directory{path: path}
	if d.Lock() != nil {
		return
	}
	defer d.held.Close()
	_ = sandbox.RemoveScratch(path)
}
