package gitops_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops"
)

func openAt(t *testing.T, dir, state string) *gitops.Checkout {
	t.Helper()
	c, err := gitops.Open(t.Context(), gitops.Options{Dir: dir, Git: gitops.FindGit("/usr/bin:/bin", dir), State: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.SetBase(gitops.BaseSpec{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestResumesInAnotherProcess marks a checkout, changes it as an agent does, and
// finds the same change from the mark.
func TestResumesInAnotherProcess(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	r.Write("mine\xff", "untracked before\n")
	first := openAt(t, r.Dir, t.TempDir())
	snap, err := first.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mark, err := first.Mark(snap, snap)
	if err != nil {
		t.Fatal(err)
	}
	r.Write("README", "one\n2\n")
	r.Write("new/file", "new\n")
	r.Remove("gone")
	want, err := first.Changes(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	second := openAt(t, r.Dir, t.TempDir())
	snap, _, err = second.Resume(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	got, err := second.Changes(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Files, got.Files); diff != "" || want.Tree != got.Tree {
		t.Errorf("the change is another (-before +after):\n%s", diff)
	}
}
