package workspace

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
)

// What can't be put into the checkout to its end is taken out again, and nothing of what
// others change there.
func TestAChangeIsInTheCheckoutWholeOrNotAtAll(t *testing.T) {
	repo := seeded(t)
	repo.Write("mine", "untracked\n")
	w := working(t, repo.Dir)
	w.UseOverlay(new(Overlay))
	before := repo.Files()
	broken := errors.New("the disk is full")
	change := &gitops.ChangeSet{Files: []gitops.File{{Path: "README"}, {Path: "new"}, {Path: "gone"}}}
	err := w.land(t.Context(), "", change, func() error {
		repo.Write("README", "half\n")
		repo.Write("new", "half\n")
		repo.Remove("gone")
		repo.Write("src/main.go", "of others\n")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if after := repo.Files(); len(after) != len(before) || after["README"] != before["README"] || after["gone"] != before["gone"] || after["src/main.go"] != "of others\n" {
		t.Errorf("the checkout has %q", after)
	}
	if got := repo.Git("status", "--porcelain"); got != " M src/main.go\n?? mine" || w.rec.Has(landingFile) {
		t.Errorf("git tells %q", got)
	}
}
