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

// Each row of the table has a section of examples, in the order of the table.
func TestPatternsMatchTheirExamples(t *testing.T) {
	var id, path string
	var signs []string // of the examples of each section
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/examples.txt"))(t))) {
		line = strings.TrimSuffix(line, "\n")
		switch sign, example := (line + "#")[0], line[min(2, len(line)):]; sign {
		case '#':
		case '+', '-':
			ids := found(t, path, example)
			if sign == '+' && !slices.Contains(ids, id) || sign == '-' && ids != nil {
				t.Errorf("%s: %s\nfound %q", id, line, ids)
			}
			signs[len(signs)-1] += string(sign)
		default:
			id, path, _ = strings.Cut(line, " ")
			p := patternTable[min(len(signs), len(patternTable)-1)]
			must.Same(t, true, id == p.ID && p.Why != "" && must.Get(policy.MatchesPattern(p.Files, path))(t), line, "is the section of", p.ID, "with a reason, and the path fits")
			signs = append(signs, "")
		}
	}
	must.Same(t, len(patternTable), len(signs), "sections")
	for i, s := range signs {
		must.Same(t, true, strings.Contains(s, "+") && strings.Contains(s, "-"), patternTable[min(i, len(patternTable)-1)].ID, "has examples of both kinds", s)
	}
}
