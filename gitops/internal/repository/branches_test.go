package repository_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
)

func TestBranchesAt(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	head := r.Git("rev-parse", "HEAD")
	r.Git("branch", "b/packed")
	r.Git("pack-refs", "--all")
	r.Git("branch", "a")
	r.Git("checkout", "-q", "b/packed")
	r.Commit("later")
	c := open(t, r.Dir)
	got, err := c.BranchesAt(head)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "branches", []string{"a", "main"}, got)
}

func TestDefaultBranch(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	if got := open(t, r.Dir).DefaultBranch(); got != "" {
		t.Errorf("a repository without origin has the default branch %q", got)
	}
	r.Git("update-ref", "refs/remotes/origin/trunk", "HEAD")
	r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	if got := open(t, r.Dir).DefaultBranch(); got != "trunk" {
		t.Errorf("the default branch is %q, want trunk", got)
	}
}

func TestBranchFits(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("branch", "loose")
	r.Git("branch", "packed/below")
	c := open(t, r.Dir)
	for name, fits := range map[string]bool{
		"new": true, "packed/beside": true, "loose": true,
		"loose/below": false, "a..b": false, "": false,
	} {
		if err := c.BranchFits(name); (err == nil) != fits {
			t.Errorf("BranchFits(%q) = %v", name, err)
		}
	}
}
