package gitops_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
)

func TestSwap(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("a", "base\n")
	r.Write("sub/b", "base\n")
	r.Write("away/c", "base\n")
	r.Seed()
	c := r.open()
	snap := snapshot(t, c)
	r.Write("a", "changed\n")
	r.Write("sub/b", "changed\n")
	r.Remove("away/c")
	r.Write("new/deep/d", "new\n")
	change, err := c.Changes(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		tree, other gitops.Tree
		paths       []string
		want        map[string]changeset.Status // as the base has it
	}{
		"nothing":          {change.Base.Tree, change.Tree, nil, map[string]changeset.Status{}},
		"some":             {change.Base.Tree, change.Tree, []string{"sub/b", "new/deep/d"}, map[string]changeset.Status{"sub/b": "M", "new/deep/d": "A"}},
		"what is gone":     {change.Base.Tree, change.Tree, []string{"away/c"}, map[string]changeset.Status{"away/c": "D"}},
		"the other way":    {change.Tree, change.Base.Tree, []string{"away/c", "a", "new/deep/d"}, map[string]changeset.Status{"sub/b": "M"}},
		"a folder is none": {change.Base.Tree, change.Tree, []string{"new"}, map[string]changeset.Status{}},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := c.Swap(of.tree, of.other, of.paths)
			if err != nil {
				t.Fatal(err)
			}
			differs, err := c.ChangeBetween(t.Context(), change.Base, tree)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]changeset.Status{}
			for _, f := range differs.Files {
				got[f.Path] = f.Status
			}
			if diff := cmp.Diff(of.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := c.Swap("0123456789012345678901234567890123456789", change.Tree, []string{"a"}); err == nil {
		t.Error("a tree that is not there was taken")
	}
}
