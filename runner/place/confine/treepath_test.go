package confine

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// inTrees is a Sandboxes of a run whose commands nothing confines, in a checkout, with all trees in a folder.
func inTrees(t *testing.T, root, runs string) *Sandboxes {
	t.Helper()
	s := ready(t)
	s.Root, s.Environ = root, []string{"RUNNER_TEMP=" + runs}
	s.Checkout, s.confinement = &stubCheckout{}, record.Confinement{Level: "none", WorkTree: PrivateTree}
	return s
}

// makes has the tree of a run, with a file of it.
func makes(t *testing.T, s *Sandboxes, file string) {
	t.Helper()
	must.Do(t, os.MkdirAll(s.treeFolder(), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(s.treeFolder(), file), nil, 0o600))
	must.Do(t, s.Record.RecordPrivateTree(s.treeFolder(), s.treeFolder()))
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

func TestRunsShareTreePath(t *testing.T) {
	root, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	first, second := inTrees(t, root, runs), inTrees(t, root, runs)
	must.Do(t, first.ClaimPath())
	makes(t, first, "first")
	if stop, is := second.ClaimPath().(*outcome.Stop); !is || stop.Reason != "checkout_in_use" { //nolint:errorlint // as it is
		t.Errorf("two runs have one path: %v", stop)
	}
	if denied := first.fileAccess(AgentPlace()).DenyRead; !slices.Contains(denied, filepath.Join(runs, "agent-ci", treesFolder)) {
		t.Errorf("commands may read other trees: %q", denied)
	}
	path := first.treeFolder()

	// It dies while a check has its path.
	must.Do(t, must.Err(first.MoveTreeAside()))
	makes(t, first, "check")
	must.Do(t, first.private.path.lockFile.Close())
	first.private.path = nil
	must.Do(t, second.ClaimPath())
	if !HasWorkTree(first.Record.Directory) || HasWorkTree(second.Record.Directory) || second.treeFolder() != path || len(filesOf(t, second)) > 0 {
		t.Errorf("the second run finds %q at %s", filesOf(t, second), second.treeFolder())
	}
	makes(t, second, "second")
	second.ReleaseTreePath() // which leaves its tree

	must.Do(t, first.ClaimPath())
	must.Same(t, []string{"first"}, filesOf(t, first), "the first run goes on with")
	must.Same(t, true, HasWorkTree(second.Record.Directory), "the tree of the second run is missing")
	must.Do(t, os.RemoveAll(second.Record.Path()))
	must.Do(t, first.RemoveTreeAtEnd())
	first.ReleaseTreePath()

	// The tree of a run whose directory was removed goes, and nothing is left.
	third := inTrees(t, root, runs)
	must.Do(t, third.ClaimPath())
	makes(t, third, "third")
	third.ReleaseTreePath()
	below := filepath.Join(runs, "agent-ci")
	must.Do(t, DropAbandonedTrees(below))
	must.Same(t, true, HasWorkTree(third.Record.Directory), "the tree of a run that is there was removed")
	must.Do(t, os.RemoveAll(third.Record.Path()))
	must.Do(t, DropAbandonedTrees(below))
	if entries, err := os.ReadDir(runs); err == nil && len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

// A run that cannot take the path takes nothing of the run that left its tree there.
func TestFailedClaimChangesNothing(t *testing.T) {
	root, below := t.TempDir(), t.TempDir()
	runs := filepath.Join(below, "runs")
	must.Do(t, os.MkdirAll(filepath.Join(below, "disk"), 0o700))
	must.Do(t, os.MkdirAll(runs, 0o700))
	must.Do(t, os.Symlink(filepath.Join(below, "disk"), filepath.Join(runs, "agent-ci")))

	killed, failing := inTrees(t, root, runs), inTrees(t, root, runs)
	must.Do(t, killed.ClaimPath())
	makes(t, killed, "work")
	dir := killed.private.path.dir
	killed.private.path.unlock()
	killed.private.path = nil
	aside := filepath.Join(dir, shortDigest(withoutLinks(killed.Record.Path())))
	must.Do(t, os.WriteFile(aside, nil, 0o600)) // so that the tree cannot be moved away
	if err := failing.ClaimPath(); err == nil || failing.private.path != nil {
		t.Fatalf("it has the path: %v", err)
	}
	must.Do(t, failing.RemoveTreeAtEnd())
	failing.ReleaseTreePath()
	must.Do(t, os.Remove(aside))
	if !HasWorkTree(killed.Record.Directory) {
		t.Fatal("the tree of the killed run is missing")
	}

	must.Do(t, killed.ClaimPath())
	must.Do(t, killed.RemoveTreeAtEnd())
	killed.ReleaseTreePath()
	must.Is(t, nil, must.Err(os.Lstat(filepath.Join(runs, "agent-ci"))), "a link of the user's was removed")
}

// A run that starts while an abandoned tree of its checkout is moved away waits for that.
func TestRunWaitsForMoveOfAbandonedTree(t *testing.T) {
	root, runs := t.TempDir(), t.TempDir()
	removed, starting := inTrees(t, root, runs), inTrees(t, root, runs)
	must.Do(t, removed.ClaimPath())
	makes(t, removed, "work")
	dir := removed.private.path.dir
	removed.ReleaseTreePath()
	must.Do(t, os.RemoveAll(removed.Record.Path()))

	took := make(chan error, 1)
	must.Do(t, (&treePath{dir: dir}).removeOwnerless(func() bool {
		go func() { took <- starting.ClaimPath() }()
		for waiting := false; !waiting && len(took) == 0; {
			locks, err := os.ReadFile("/proc/locks")
			waiting = err != nil || bytes.Contains(locks, []byte("-> FLOCK"))
		}
		return true
	}))
	must.Do(t, <-took)
	must.None(t, filesOf(t, starting), "the run begins with")
	starting.ReleaseTreePath()
}
