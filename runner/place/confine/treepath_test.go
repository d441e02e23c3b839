package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// inTrees is a Sandboxes of a run whose commands nothing confines, in a checkout, with all trees in a folder.
func inTrees(t *testing.T, root, runs string) *Sandboxes {
	t.Helper()
	s := ready(t)
	s.Root, s.Environ = root, []string{"RUNNER_TEMP=" + runs}
	s.reached = record.Confinement{Level: "none", WorkTree: PrivateTree}
	return s
}

// makes has the tree of a run, with a file of it.
func makes(t *testing.T, s *Sandboxes, file string) {
	t.Helper()
	if err := os.MkdirAll(s.treeFolder(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.treeFolder(), file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Record.PutMadeTree(s.treeFolder(), s.treeFolder()); err != nil {
		t.Fatal(err)
	}
}

func filesOf(t *testing.T, s *Sandboxes) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(s.treeFolder())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRunsTakeTurnsAtThePathOfTrees(t *testing.T) {
	root, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	first, second := inTrees(t, root, runs), inTrees(t, root, runs)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(first.takePath())
	makes(t, first, "first")
	if stop, is := second.takePath().(*outcome.Stop); !is || stop.Reason != "checkout_in_use" { //nolint:errorlint // as it is
		t.Errorf("two runs have one path: %v", stop)
	}
	if denied := first.folders(Agent()).DenyRead; !slices.Contains(denied, filepath.Join(runs, "agent-ci", treesFolder)) {
		t.Errorf("commands may read other trees: %q", denied)
	}
	path := first.treeFolder()

	// It dies while a check has its path.
	_, err := first.SetAside()
	must(err)
	makes(t, first, "check")
	must(first.path.held.Close())
	first.path = nil
	must(second.takePath())
	if !LeftTree(first.Record.Directory) || LeftTree(second.Record.Directory) || second.treeFolder() != path || len(filesOf(t, second)) > 0 {
		t.Errorf("the second run finds %q at %s", filesOf(t, second), second.treeFolder())
	}
	makes(t, second, "second")
	second.Release() // which leaves its tree

	must(first.takePath())
	if got := filesOf(t, first); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the first run goes on with %q", got)
	}
	if !LeftTree(second.Record.Directory) {
		t.Error("the tree of the second run is missing")
	}
	must(os.RemoveAll(second.Record.Path()))
	must(first.LeaveTree())
	first.Release()

	// The tree of a run whose directory was removed goes, and nothing is left.
	third := inTrees(t, root, runs)
	must(third.takePath())
	makes(t, third, "third")
	third.Release()
	below := filepath.Join(runs, "agent-ci")
	must(DropAbandonedTrees(below))
	if !LeftTree(third.Record.Directory) {
		t.Error("the tree of a run that is there was removed")
	}
	must(os.RemoveAll(third.Record.Path()))
	must(DropAbandonedTrees(below))
	if entries, err := os.ReadDir(runs); err == nil && len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}
