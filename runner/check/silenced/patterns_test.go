package silenced

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/check/lines"
)

// diffOf is a change of one file: "old → new", or an added line.
func diffOf(path, example string) *lines.Diff {
	f := lines.File{Path: path}
	old, now, both := strings.Cut(example, " → ")
	if !both {
		old, now = "", example
	}
	add := func(to *[]lines.Line, text string) {
		for i, line := range strings.Split(text, "\n") {
			before := ""
			if i > 0 {
				before = strings.TrimSpace((*to)[i-1].Text)
			}
			*to = append(*to, lines.Line{Number: i + 1, Text: line, Before: before})
		}
	}
	if old != "" {
		add(&f.Removed, old)
	}
	if now != "" {
		add(&f.Added, now)
	}
	return &lines.Diff{Files: []lines.File{f}}
}

func found(t *testing.T, path, example string) (ids []string) {
	t.Helper()
	all, _, err := Find(diffOf(path, example))
	must.Do(t, err)
	for _, s := range all {
		ids = append(ids, s.Pattern)
	}
	return ids
}

func TestPatternsMatchTheirExamples(t *testing.T) {
	for _, p := range patternTable {
		if fits, err := policy.MatchesPattern(p.Files, p.Path); err != nil || !fits || p.Why == "" || len(p.Is) == 0 || len(p.IsNot) == 0 {
			t.Errorf("%s: its path %s, its reason or its examples are no good (%v)", p.ID, p.Path, err)
		}
		for _, example := range p.Is {
			if ids := found(t, p.Path, example); !slices.Contains(ids, p.ID) {
				t.Errorf("%s does not find %q; found %q", p.ID, example, ids)
			}
		}
		for _, example := range p.IsNot {
			must.None(t, found(t, p.Path, example), p.ID, example, "is no sign; found")
		}
	}
}
