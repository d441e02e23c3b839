package pathname_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

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

func TestMatchesHostileGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob    string
		matches bool
		err     error
	}{
		{"src/**/*.{ts,tsx}", true, nil},
		{`{a\{,src}/**`, true, nil},
		{"{src,{lib,{test,e2e}}}/*/x.ts", true, nil},
		{"{src", false, doublestar.ErrBadPattern},
		{strings.Repeat("{s,sr}", 40) + "c", false, pathname.ErrAlternatives},
		{strings.Repeat("{}", 500_000), false, pathname.ErrAlternatives},
		{"{" + strings.Repeat("a,", 2000) + "src}/**", false, pathname.ErrAlternatives},
		{strings.Repeat("{", 500_000), false, doublestar.ErrBadPattern},
		{strings.Repeat("**/", 500_000) + "x.ts", true, nil},
	} {
		matches, err := pathname.MatchGlob(c.glob, "src/lib/x.ts")
		name := c.glob[:min(20, len(c.glob))]
		must.Same(t, c.matches, matches, name)
		must.Same(t, true, errors.Is(err, c.err), name)
	}
}
