package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRemovesOnlyStaleFolders(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	begun := func(ago time.Duration) string { return NewID(now.Add(-ago)) }
	old, held, fresh, run := CommandFolderPrefix+begun(time.Hour), CommandFolderPrefix+begun(time.Hour), CommandFolderPrefix+begun(time.Second), begun(time.Hour)
	for _, name := range []string{old, held, fresh, run, CommandFolderPrefix + "of-a-person"} {
		if err := os.MkdirAll(filepath.Join(folder, name, "work", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(folder, old, "work"), 0o500); err != nil {
		t.Fatal(err)
	}
	link := CommandFolderPrefix + begun(time.Hour)
	if err := os.Symlink(run, filepath.Join(folder, link)); err != nil {
		t.Fatal(err)
	}
	works := &Directory{path: filepath.Join(folder, held)}
	if err := works.Lock(); err != nil {
		t.Fatal(err)
	}
	defer works.lockFile.Close()

	RemoveStale(folder, now)

	left := make(map[string]bool)
	for _, name := range []string{old, held, fresh, run, link, CommandFolderPrefix + "of-a-person"} {
		_, err := os.Stat(filepath.Join(folder, name))
		left[name] = err == nil
	}
	want := map[string]bool{old: false, held: true, fresh: true, run: true, link: true, CommandFolderPrefix + "of-a-person": true}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what is left differs (-want +got):\n%s", diff)
	}
}
