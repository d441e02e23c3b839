package pathname_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

func TestComparesPathsByElement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		folder, path, rel string
		below, overlap    bool
	}{
		{"/a", "/a", ".", true, true},
		{"/a", "/a/b/c", "b/c", true, true},
		{"/a/", "/a/b", "b", true, true},
		{"/", "/a", "a", true, true},
		{"/a", "/ab", "", false, false},
		{"/a/b", "/a", "", false, true},
		{"/a", "/a/../b", "", false, false},
		{"/a", "/a/..b", "..b", true, true},
		{"/a", "a", "", false, false},
		{"a", "/a", "", false, false},
		{"a", "a/b", "b", true, true},
		{".", "a", "a", true, true},
		{".", "../a", "", false, false},
		{"a", "b", "", false, false},
		{"../a", "b", "", false, false},
	} {
		rel, below := pathname.Below(c.folder, c.path)
		if below != c.below || below && rel != c.rel {
			t.Errorf("Below(%q, %q) = %q, %t", c.folder, c.path, rel, below)
		}
		must.Same(t, c.below, pathname.IsInAny(c.path, "/none", c.folder), c.path, c.folder)
		must.Same(t, c.overlap, pathname.Overlap(c.path, c.folder), c.path, c.folder)
	}
}
