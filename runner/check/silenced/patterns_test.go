package silenced

import (
	"os"
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
	id, path, count := "", "", map[string]map[byte]int{}
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/examples.txt"))(t))) {
		line = strings.TrimSuffix(line, "\n")
		switch sign, example := line[0], line[min(2, len(line)):]; sign {
		case '#':
		case '+':
			if ids := found(t, path, example); !slices.Contains(ids, id) {
				t.Errorf("%s does not find %q; found %q", id, example, ids)
			}
			count[id+" "+path][sign]++
		case '-':
			must.None(t, found(t, path, example), id, example, "is no sign; found")
			count[id+" "+path][sign]++
		default:
			id, path, _ = strings.Cut(line, " ")
			count[id+" "+path] = map[byte]int{}
		}
	}
	for _, p := range patternTable {
		hasExamples := false
		for key, signs := range count {
			id, path, _ := strings.Cut(key, " ")
			fits, err := policy.MatchesPattern(p.Files, path)
			must.Do(t, err)
			hasExamples = hasExamples || id == p.ID && fits && signs['+'] > 0 && signs['-'] > 0
		}
		if p.Why == "" || !hasExamples {
			t.Errorf("%s has no reason, or no examples of both kinds with a path that fits", p.ID)
		}
	}
}
