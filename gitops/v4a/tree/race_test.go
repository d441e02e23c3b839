package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// meddling does something, as another program would, right before the first change of a kind.
func meddling(t *testing.T, operation string, do func() error) func(int, string) bool {
	done := false
	return func(_ int, next string) bool {
		if next == operation && !done {
			done = true
			must.Is(t, nil, do())
		}
		return false
	}
}

// What another program does after all files were compared is noticed when it is
// in the way, and stays.
func TestCommitKeepsConcurrentChanges(t *testing.T) {
	const mine = "another's\n"
	write := func(name string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(mine), 0o600) }
	}
	replace := func(name string) func(string) error {
		return func(dir string) error {
			if err := write("other")(dir); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, name))
		}
	}
	tests := map[string]struct {
		sections, operation string
		noLinks             bool
		do                  func(dir string) error
		want                folder
	}{
		"a new file":             {"*** Add File: n\n+n\n", "link", false, write("n"), folder{"f": "x\n", "n": mine}},
		"a file is written":      {"*** Update File: f\n@@\n-x\n+y\n", "link", false, write("f"), folder{"f": mine}},
		"a file is replaced":     {"*** Update File: f\n@@\n-x\n+y\n", "link", false, replace("f"), folder{"f": mine}},
		"set aside and written":  {"*** Update File: f\n@@\n-x\n+y\n", "rename", true, write("f"), folder{"f": mine}},
		"a file is gone":         {"*** Update File: f\n@@\n-x\n+y\n", "link", false, func(dir string) error { return os.Remove(filepath.Join(dir, "f")) }, folder{}},
		"a deletion is written":  {"*** Delete File: f\n", "rename", false, write("f"), folder{"f": mine}},
		"a deletion is replaced": {"*** Delete File: f\n", "rename", false, replace("f"), folder{"f": mine}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder{"f": "x\n"}.write(t, dir)
			f := &faults{fails: meddling(t, tt.operation, func() error { return tt.do(dir) }), noLinks: tt.noLinks}
			err := plannedOn(t, faulty{tree.OnRoot(openRoot(t, dir)), f}, tt.sections).Commit(t.Context())
			if _, ok := errors.AsType[*tree.ChangedError](err); !ok {
				t.Errorf("error = %v", err)
			}
			wantTree(t, dir, tt.want)
		})
	}
}

// An undo leaves alone what another program has put in the place of a file that
// the commit had written already.
func TestUndoSparesOthers(t *testing.T) {
	dir := t.TempDir()
	folder{"z": "x\n"}.write(t, dir)
	const mine = "another's\n"
	other := func(name string) error {
		full := filepath.Join(dir, name)
		if err := os.WriteFile(full+".new", []byte(mine), 0o600); err != nil {
			return err
		}
		return os.Rename(full+".new", full)
	}
	// The first removal is that of the temporary name of "n", which is in place.
	f := &faults{fails: meddling(t, "remove", func() error { return errors.Join(other("n"), other("z")) })}
	err := plannedOn(t, faulty{tree.OnRoot(openRoot(t, dir)), f}, "*** Add File: n\n+n\n*** Update File: z\n@@\n-x\n+y\n").Commit(t.Context())
	if _, ok := errors.AsType[*tree.ChangedError](err); !ok {
		t.Errorf("error = %v", err)
	}
	wantTree(t, dir, folder{"n": mine, "z": mine})
}
