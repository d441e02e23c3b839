package gitops_test

import (
	"errors"
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
)

func inUse(err error) bool {
	var used *gitops.InUseError
	return errors.As(err, &used)
}

func TestClaimKeepsASecondRunOut(t *testing.T) {
	r := newRepo(t)
	r.Seed()
	first, second := r.open(""), r.open("")
	if err := first.Claim(); err != nil {
		t.Fatal(err)
	}
	if err := second.Claim(); !inUse(err) {
		t.Errorf("a second claim: %v, want an InUseError", err)
	}
	r.Git("worktree", "add", "--quiet", "../other")
	if err := (at(t, r.Path("../other"))).open("").Claim(); err != nil {
		t.Errorf("another work tree of the repository: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Claim(); err != nil {
		t.Errorf("once the first is closed: %v", err)
	}
}

func TestIdleFindsTheLockOfAGit(t *testing.T) {
	r := newRepo(t)
	r.Seed()
	r.Write(".git/index.lock", "")
	c := r.open("")
	if err := c.Idle(); !inUse(err) {
		t.Errorf("with index.lock: %v, want an InUseError", err)
	}
	if err := os.Remove(r.Path(".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	if err := c.Idle(); err != nil {
		t.Errorf("without: %v", err)
	}
}
