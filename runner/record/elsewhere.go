package record

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
)

// idPattern matches the ids of NewID.
var idPattern = lazyregexp.New(`^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$`)

// IsID reports whether a text is the id of a run.
func IsID(text string) bool { return idPattern().MatchString(text) }

// safeIDPattern matches ids that may be part of a message, of Markdown or of a commit's trailer.
var safeIDPattern = lazyregexp.New(`^[0-9A-Za-z-]{1,64}$`)

// IsSafeID reports whether a run's id from an untrusted file has no special characters.
func IsSafeID(text string) bool { return safeIDPattern().MatchString(text) }

// maxElsewhere is how many runs with directories elsewhere are remembered; the newest are kept.
// maxNoteBytes is the maximum length of such a directory's path.
const (
	maxElsewhere = 200
	maxNoteBytes = 8 << 10
)

// elsewherePath returns the folder with notes about run directories outside the usual folder. A
// note is a file named by the run's id that contains the path. The result is "" without an absolute
// state folder, and in Actions, where the machine vanishes.
func elsewherePath(getenv func(variable string) string) string {
	state := StatePath(getenv)
	if getenv("RUNNER_TEMP") != "" || !filepath.IsAbs(state) {
		return ""
	}
	return filepath.Join(state, "elsewhere")
}

// NoteElsewhere records the path of a run directory that the user chose. Errors are ignored:
// without the note, the run is only missing in lists.
func NoteElsewhere(getenv func(variable string) string, id, path string) {
	folder := elsewherePath(getenv)
	if folder == "" || os.MkdirAll(folder, 0o700) != nil {
		return
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return
	}
	defer root.Close()
	if notes, err := os.ReadDir(folder); err == nil { // sorted by name, and so by time
		for _, old := range notes[:max(len(notes)-maxElsewhere+1, 0)] {
			_ = root.Remove(old.Name())
		}
	}
	_ = root.WriteFile(id, []byte(path+"\n"), 0o600)
}

// RunsElsewhere returns the noted run directories by run id. They may have been removed since.
func RunsElsewhere(getenv func(variable string) string) map[string]string {
	all := map[string]string{}
	folder := elsewherePath(getenv)
	if folder == "" {
		return all
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return all
	}
	defer root.Close()
	notes, _ := os.ReadDir(folder) // an incomplete list is good enough
	for _, n := range notes {
		raw, err := boundedfile.ReadIn(root, n.Name(), maxNoteBytes)
		if path := strings.TrimSuffix(string(raw), "\n"); err == nil && IsID(n.Name()) && filepath.IsAbs(path) {
			all[n.Name()] = path
		}
	}
	return all
}

// ForgetElsewhere removes the note of a run.
func ForgetElsewhere(getenv func(variable string) string, id string) {
	if folder := elsewherePath(getenv); folder != "" && IsID(id) {
		_ = os.Remove(filepath.Join(folder, id))
	}
}
