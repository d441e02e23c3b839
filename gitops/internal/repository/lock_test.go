package repository_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

func inUse(err error) bool {
	var used *repository.InUseError
	return errors.As(err, &used)
}

func TestClaimKeepsASecondRunOut(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	first, second := open(t, r.Dir), open(t, r.Dir)
	if err := first.Claim(); err != nil {
		t.Fatal(err)
	}
	if err := second.Claim(); !inUse(err) {
		t.Errorf("a second claim: %v, want an InUseError", err)
	}
	r.Git("worktree", "add", "--quiet", "../other")
	if err := open(t, r.Path("../other")).Claim(); err != nil {
		t.Errorf("another work tree of the repository: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Claim(); err != nil {
		t.Errorf("once the first is closed: %v", err)
	}
}

// Of two that share and claim at once none gets the work tree, and both share it
// still.
func TestClaimAtOnce(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	runs := []*repository.Repository{open(t, r.Dir), open(t, r.Dir)}
	stranger := open(t, r.Dir)
	for _, c := range runs {
		if err := c.Share(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		var each sync.WaitGroup
		for _, c := range runs {
			each.Go(func() {
				if err := c.Claim(); !inUse(err) {
					t.Errorf("a claim while another shares: %v", err)
				}
			})
		}
		each.Wait()
		if err := stranger.Claim(); !inUse(err) {
			t.Fatalf("a claim while two share: %v", err)
		}
	}
}

func TestUnwritableNamesTheFolder(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	c := open(t, r.Dir)
	if path, err := c.Unwritable(); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	r.Chmod(".git/objects", 0o555)
	defer r.Chmod(".git/objects", 0o755)
	if path, err := c.Unwritable(); !errors.Is(err, fs.ErrPermission) || filepath.Base(path) != "objects" {
		t.Errorf("%s: %v", path, err)
	}
}

func TestHoldIndexKeepsGitOut(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	c := open(t, r.Dir)
	add := func() error {
		r.Write("README", "changed\n")
		return r.TryGit("add", "README")
	}
	ix, err := c.Index(t.Context())
	if err = errors.Join(err, c.HoldIndex(t.Context(), "mine\n")); err != nil {
		t.Fatal(err)
	}
	if add() == nil {
		t.Error("git writes the index")
	}
	if err := errors.Join(c.WriteIndex(ix, nil), c.CheckFree("other")); err != nil {
		t.Errorf("who holds the index: %v", err)
	}
	later := open(t, r.Dir)
	if !later.HasMark("mine\n") || later.HasMark("another's\n") {
		t.Error("the lock does not tell whose it is")
	}
	if err := later.HoldIndex(t.Context(), "another's\n"); !inUse(err) {
		t.Errorf("a second one: %v", err)
	}
	r.Write(".git/index.lock", "theirs")
	if err := c.WriteIndex(ix, nil); !inUse(err) {
		t.Errorf("with the lock of another in its place: %v", err)
	}
	r.Write(".git/index.lock", "mine\n")
	if err := errors.Join(later.ReleaseIndex(), c.ReleaseIndex()); err != nil || add() != nil {
		t.Errorf("released: %v", err)
	}
	r.Write(".git/index.lock", "")
	if err := c.ReleaseIndex(); err != nil || c.Idle(t.Context()) == nil {
		t.Errorf("the lock of another is removed: %v", err)
	}
	if left, err := filepath.Glob(r.Path(".git/index.agent-ci*")); err != nil || left != nil {
		t.Errorf("it leaves %q, %v", left, err)
	}
}
