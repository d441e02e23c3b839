package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRemovesOnlyStaleFolders(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	begun := func(ago time.Duration) string { return NewID(now.Add(-ago)) }
	old, held, fresh, run := CommandFolderPrefix+begun(time.Hour), CommandFolderPrefix+begun(time.Hour), CommandFolderPrefix+begun(time.Second), begun(time.Hour)
	for _, name := range []string{old, held, fresh, run, CommandFolderPrefix + "of-a-person"} {
		must.Do(t, os.MkdirAll(filepath.Join(folder, name, "work", "deep"), 0o700))
	}
	must.Do(t, os.Chmod(filepath.Join(folder, old, "work"), 0o500))
	link := CommandFolderPrefix + begun(time.Hour)
	must.Do(t, os.Symlink(run, filepath.Join(folder, link)))
	works := &Directory{path: filepath.Join(folder, held)}
	must.Do(t, works.Lock())
	defer works.lockFile.Close()

	RemoveStale(folder, now)

	left := make(map[string]bool)
	for _, name := range []string{old, held, fresh, run, link, CommandFolderPrefix + "of-a-person"} {
		_, err := os.Stat(filepath.Join(folder, name))
		left[name] = err == nil
	}
	want := map[string]bool{old: false, held: true, fresh: true, run: true, link: true, CommandFolderPrefix + "of-a-person": true}
	must.Same(t, want, left, "what is left differs")
}
