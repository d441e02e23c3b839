package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/google/go-cmp/cmp"
)

// meddled is a directory in which another program does something right before
// the first change of a kind.
type meddled struct {
	tree.Dir
	*meddling
}

type meddling struct {
	operation string
	do        func() error
	noLinks   bool
	err       error
}

func (m *meddling) before(operation string) {
	if m.operation == operation {
		m.operation = ""
		m.err = m.do()
	}
}

func (d meddled) Sub(name string) (tree.Dir, error) {
	sub, err := d.Dir.Sub(name)
	return meddled{sub, d.meddling}, err
}

func (d meddled) Link(name, second string) error {
	if d.noLinks {
		return errors.ErrUnsupported
	}
	d.before("link")
	return d.Dir.Link(name, second)
}

func (d meddled) Rename(name, to string) error {
	d.before("rename")
	return d.Dir.Rename(name, to)
}

func (d meddled) Remove(name string) error {
	d.before("remove")
	return d.Dir.Remove(name)
}

// What another program does after all files were compared is noticed when it is
// in the way, and stays.
func TestLastMomentChanges(t *testing.T) {
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
			m := &meddling{operation: tt.operation, do: func() error { return tt.do(dir) }, noLinks: tt.noLinks}
			patch, err := v4a.Parse(envelope(tt.sections))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := tree.NewPlan(t.Context(), meddled{tree.OnRoot(openRoot(t, dir)), m}, patch)
			if err != nil {
				t.Fatal(err)
			}
			err = plan.Commit(t.Context())
			if _, ok := errors.AsType[*tree.ChangedError](err); !ok || m.err != nil {
				t.Errorf("error = %v, meddling: %v", err, m.err)
			}
			if diff := cmp.Diff(tt.want, readTree(t, dir)); diff != "" {
				t.Error(diff)
			}
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
	m := &meddling{operation: "remove", do: func() error { return errors.Join(other("n"), other("z")) }}
	patch, err := v4a.Parse(envelope("*** Add File: n\n+n\n*** Update File: z\n@@\n-x\n+y\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := tree.NewPlan(t.Context(), meddled{tree.OnRoot(openRoot(t, dir)), m}, patch)
	if err != nil {
		t.Fatal(err)
	}
	err = plan.Commit(t.Context())
	if _, ok := errors.AsType[*tree.ChangedError](err); !ok || m.err != nil {
		t.Errorf("error = %v, meddling: %v", err, m.err)
	}
	if diff := cmp.Diff(folder{"n": mine, "z": mine}, readTree(t, dir)); diff != "" {
		t.Error(diff)
	}
}
