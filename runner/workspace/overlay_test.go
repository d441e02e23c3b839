package workspace

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What can't be put into the checkout to its end is taken out again, and nothing of what
// others change there.
func TestAChangeIsInTheCheckoutWholeOrNotAtAll(t *testing.T) {
	repo := seeded(t)
	repo.Write("mine", "untracked\n")
	w := working(t, repo.Dir)
	before := repo.Files()
	repo.Write("README", "whole\n")
	repo.Write("new", "whole, too\n")
	repo.Write("saved", "of the change\n")
	repo.Remove("gone")
	change := must(w.Changes(t.Context()))(t)
	ok(t, w.checkout.Restore(t.Context(), change))
	w.UseOverlay(new(Overlay))
	broken := errors.New("the disk is full")
	err := w.land(t.Context(), landing{}, change, func() error {
		repo.Write("README", "whole\n")
		repo.Write("new", "whole")
		repo.Remove("gone")
		repo.Write("src/main.go", "of others\n")
		repo.Write("saved", "of others\n")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	before["src/main.go"], before["saved"] = "of others\n", "of others\n"
	if diff := cmp.Diff(before, repo.Files()); diff != "" {
		t.Errorf("the checkout has others (-want +got):\n%s", diff)
	}
	if got := repo.Git("status", "--porcelain"); got != " M src/main.go\n?? mine\n?? saved" || w.rec.Has(landingFile) {
		t.Errorf("git tells %q", got)
	}
}
