package repository_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestBranches(t *testing.T) {
	r := gittest.Seeded(t)
	head := r.Git("rev-parse", "HEAD")
	r.Git("branch", "b/packed")
	r.Git("pack-refs", "--all")
	r.Git("branch", "a")
	r.Git("checkout", "-q", "b/packed")
	r.Commit("later")
	c := open(t, r.Dir)
	got := must.Get(c.BranchesAt(head))(t)
	must.Same(t, []string{"a", "main"}, got, "branches")
	must.Same(t, "", c.DefaultBranch(), "default branch without origin")
	r.Git("update-ref", "refs/remotes/origin/trunk", "HEAD")
	r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	must.Same(t, "trunk", c.DefaultBranch(), "default branch")
}
