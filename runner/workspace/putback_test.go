package workspace

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

func TestProtectedPathsArePutBack(t *testing.T) {
	repo := seeded(t)
	repo.Write("locked/old", "base\n")
	repo.Commit("more")
	w := working(t, repo.Dir)
	repo.Write("locked/old", "changed\n")
	repo.Write("locked/new", "made\n")
	repo.Write("free", "made\n")
	left := must(w.PutBack(t.Context(), change(t, w), []string{"locked/new", "locked/old"}))(t)
	if len(left.Files) != 1 || left.Files[0].Path != "free" || repo.Read("locked/old") != "base\n" {
		t.Errorf("left %v, locked/old is %q", left.Files, repo.Read("locked/old"))
	}
	if _, err := os.Lstat(repo.Path("locked/new")); err == nil {
		t.Error("what was made at a protected path is there")
	}
	warned := w.rec.Warnings()
	if len(warned) != 1 || warned[0].Message != "Changes of protected files were left out (policy.on_protected): locked/new, locked/old." {
		t.Errorf("warned of %v", warned)
	}
}

func TestWhatIsInTheWayOfAProtectedPathIsNamed(t *testing.T) {
	repo := seeded(t)
	repo.Write("locked/old", "base\n")
	repo.Write(".gitignore", "kept\n")
	repo.Commit("more")
	w := working(t, repo.Dir)
	repo.Remove("locked/old")
	repo.Write("locked/old/kept", "ignored, so that nobody may remove it\n")
	_, err := w.PutBack(t.Context(), change(t, w), []string{"locked/old"})
	var stop *outcome.Stop
	if !errors.As(err, &stop) {
		t.Fatalf("put back: %v", err)
	}
	want := "The change touches protected files (locked/old), which can't be put back (policy.on_protected): what was made at locked/old/ is in the way; have it removed."
	if diff := cmp.Diff(want, stop.Message); diff != "" {
		t.Error(diff)
	}
}
