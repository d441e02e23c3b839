package tree_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestEditsContainOldAndNewText(t *testing.T) {
	dir := t.TempDir()
	folder{"f": "a\nb\nc\n", "gone": "x\n", "old": "o\n"}.write(t, dir)
	plan := planned(t, dir, "*** Update File: f\n@@\n a\n-b\n+B\n c\n*** Add File: new\n+n\n*** Delete File: gone\n*** Update File: old\n*** Move to: moved\n@@\n-o\n+O\n")
	want := []tree.Edit{
		{Change: tree.Change{Path: "f", Op: v4a.Update, Added: 1, Removed: 1}, Text: "a\nB\nc\n", Old: "b\n", New: "B\n"},
		{Change: tree.Change{Path: "gone", Op: v4a.Delete, Removed: 1}, Old: "x\n"},
		{Change: tree.Change{Path: "moved", MovedFrom: "old", Op: v4a.Update, Added: 1, Removed: 1}, Text: "O\n", Old: "o\n", New: "O\n"},
		{Change: tree.Change{Path: "new", Op: v4a.Add, Added: 1}, Text: "n\n", New: "n\n"},
	}
	must.Same(t, want, plan.Edits())
}
