package gitops_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBaseFiles(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	r.Write(".github/Pull_Request_Template.md", "a\n")
	r.Write(".github/ISSUE_TEMPLATE/bug.md", "b\n")
	r.Link("../README", ".github/link.md")
	r.Commit("templates")
	c := r.open()
	r.Write(".github/untracked.md", "c\n")
	for folder, want := range map[string][]string{
		".github": {"Pull_Request_Template.md"}, ".github/ISSUE_TEMPLATE": {"bug.md"}, "none": nil, "README": nil, "../.github": nil,
	} {
		got, err := c.BaseFiles(folder)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", folder, err, diff)
		}
	}
	root, err := c.BaseFiles("")
	if err != nil || len(root) == 0 || cmp.Diff([]string{"README"}, root[:1]) != "" {
		t.Errorf("the root: %q, %v", root, err)
	}
}
