package lessons

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/memory"
)

const kept = `version: 1
lessons:
  - id: l-1
    claim: The port is 80.
    evidence: [a/b.go@0123456, "check:unit tests"]
    run: r1
    date: 2026-01-31
`

var first = memory.Lesson{ID: "l-1", Claim: "The port is 80.", Evidence: []string{"a/b.go@0123456", "check:unit tests"}, Run: "r1", Date: "2026-01-31"}

func TestParsesLessons(t *testing.T) {
	got, problems := Parse([]byte(kept))
	must.Same(t, []memory.Lesson{first}, got, problems)
	must.None(t, problems)
	for _, empty := range []string{"", "version: 1\nlessons:\n", "version: 1\nlessons: []\n"} {
		if got, problems := Parse([]byte(empty)); len(got)+len(problems) > 0 {
			t.Errorf("%q: %v, %v", empty, got, problems)
		}
	}
}

func TestReportsMistakes(t *testing.T) {
	change := func(old, now string) string { return strings.Replace(kept, old, now, 1) }
	for _, test := range []struct{ name, text, want string }{
		{"no mapping", "- x\n", "lessons.yml:1:1: must be a mapping with version, lessons"},
		{"no version", "lessons:\n", "lessons.yml:1:1: version: is missing"},
		{"version", change("version: 1", "version: 2"), "lessons.yml:1:10: version: must be 1"},
		{"no list", "version: 1\nlessons: x\n", "lessons.yml:2:10: lessons: must be a list"},
		{"unknown key", change("claim:", "claims:"), "lessons.yml:4:5: lessons[0].claims: unknown key; did you mean claim?"},
		{"missing", change("    run: r1\n", ""), "lessons.yml:3:5: lessons[0].run: is missing"},
		{"twice", change("    run: r1\n", "    run: r1\n    run: r2\n"), "lessons.yml:7:5: lessons[0].run: is given twice, the first time in line 6"},
		{"id", change("l-1", "L_1"), "lessons.yml:3:9: lessons[0].id: must be lower-case letters"},
		{"number", change("The port is 80.", "80"), "lessons.yml:4:12: lessons[0].claim: must be text"},
		{"two lines", change("The port is 80.", `"a\nb"`), "lessons.yml:4:12: lessons[0].claim: must be one line of characters that can be seen, without U+000A"},
		{"hidden", change("The port is 80.", `"a\u200bb"`), "without U+200B"},
		{"hidden by a mark", change("The port is 80.", `"a\U000E0101b"`), "without U+E0101"},
		{"hidden by a letter", change("The port is 80.", `"a\u3164b"`), "without U+3164"},
		{"direction", change("The port is 80.", `"a\u202eb"`), "without U+202E"},
		{"long", change("The port is 80.", strings.Repeat("x", 501)), "lessons.yml:4:12: lessons[0].claim: has 501 bytes, more than 500"},
		{"path out", change("a/b.go", "../b.go"), "lessons.yml:5:16: lessons[0].evidence[0]: must be path@sha"},
		{"no pin", change("@0123456", ""), "lessons.yml:5:16: lessons[0].evidence[0]: must name a commit or blob"},
		{"no evidence", change(`[a/b.go@0123456, "check:unit tests"]`, "[]"), "lessons.yml:5:15: lessons[0].evidence: must be a list of 1 to 5"},
		{"date", change("2026-01-31", "yesterday"), "lessons.yml:7:11: lessons[0].date: must be a date"},
		{"alias", change("run: r1", "run: &a r1"), "lessons.yml:6:5: lessons[0]: anchors, aliases"},
		{"tag", change("run: r1", "run: !!str r1"), "anchors, aliases, tags"},
		{"same id", kept + strings.SplitAfterN(kept, "lessons:\n", 2)[1], "lessons.yml:8:5: lessons[1].id: is also that of the entry in line 3"},
		{"second document", kept + "---\nx: 1\n", "lessons.yml:8:1: holds a second document from here on"},
		{"no YAML", "version: 1\nlessons: [\n", "is not YAML"},
		{"large", kept + strings.Repeat("# x\n", 10<<20/4), "lessons.yml:1:1: is larger than 256 KiB"},
		{"many", "version: 1\nlessons:\n" + strings.Repeat("  - x\n", 501), "lessons.yml:3:3: lessons: has 501 entries, more than 500"},
	} {
		_, problems := Parse([]byte(test.text))
		if len(problems) == 0 || !strings.Contains(problems[0].String(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, problems, test.want)
		}
	}
	if _, problems := Parse([]byte("version: 1\nlessons:\n" + strings.Repeat("  - {}\n", 400))); len(problems) != maxProblems {
		t.Errorf("%d problems are told", len(problems))
	}
}

func TestAppendKeepsEarlierLessons(t *testing.T) {
	second := memory.Lesson{ID: "l-2", Claim: `Say "no": it's #1 \ {x}.`, Evidence: []string{"run:r0", `a "b".go@abcdef0`}, Run: "r2", Date: "2026-02-01"}
	for _, before := range []string{
		"", kept, strings.TrimSuffix(kept, "\n"), "version: 1\nlessons: []\n", "version: 1\nlessons:\n", kept + "# the end\n",
		strings.ReplaceAll(kept, "\n", "\r\n"), strings.ReplaceAll(strings.TrimSuffix(kept, "\n"), "\n", "\r\n"),
		"version: 1\nlessons:\n- " + strings.ReplaceAll(strings.TrimPrefix(strings.SplitAfterN(kept, "lessons:\n", 2)[1], "  - "), "\n    ", "\n  "),
	} {
		was, _ := Parse([]byte(before))
		after, err := Append([]byte(before), []memory.Lesson{second})
		if err != nil {
			t.Errorf("%q: %v", before, err)
			continue
		}
		got, problems := Parse(after)
		must.Same(t, append(was, second), got, before, problems)
		must.None(t, problems, before)
		if !strings.Contains(before, "[]") && !bytes.HasPrefix(after, []byte(before)) {
			t.Errorf("%q became\n%s", before, after)
		}
		if returns := bytes.Count(after, []byte("\r")); returns > 0 && returns != bytes.Count(after, []byte("\n")) {
			t.Errorf("%q has lines that end in two ways:\n%q", before, after)
		}
		if added, ok := Added([]byte(before), after, []memory.Lesson{first, second}); !ok || len(added) != 1 {
			t.Errorf("%q: what was added is not known again", before)
		}
	}
	for name, before := range map[string]string{
		"a key behind": "lessons:\n" + strings.SplitAfterN(kept, "lessons:\n", 2)[1] + "version: 1\n",
		"flow":         "version: 1\nlessons: [{id: a, claim: b, evidence: ['run:x'], run: r, date: 2026-01-31}]\n",
		"mistakes":     "version: 3\n",
		"full":         kept + strings.Repeat("#23456789012345\n", (MaxSize-len(kept)-100)/16),
	} {
		must.Fail(t, "", must.Err(Append([]byte(before), []memory.Lesson{second})), name, "it became")
	}
}

func TestAddedRefusesOtherChanges(t *testing.T) {
	proposed := memory.Lesson{ID: "l-3", Claim: "c", Evidence: []string{"x.go", "check:a"}, Run: "r", Date: "2026-01-31"}
	pinned := proposed
	pinned.Evidence = []string{"x.go@0123456789ab", "check:a"}
	fewer, more, other := pinned, pinned, pinned
	fewer.Evidence, more.Evidence, other.Claim = pinned.Evidence[:1], append(append([]string{}, pinned.Evidence...), "run:z"), "d"
	for _, test := range []struct {
		name  string
		added memory.Lesson
		want  bool
	}{{"pinned", pinned, true}, {"fewer", fewer, true}, {"more", more, false}, {"another claim", other, false}} {
		now := must.Get(Append([]byte(kept), []memory.Lesson{test.added}))(t)
		if _, ok := Added([]byte(kept), now, []memory.Lesson{proposed}); ok != test.want {
			t.Errorf("%s: %v", test.name, ok)
		}
		if _, ok := Added([]byte(kept), append(now, "# and so\n"...), []memory.Lesson{proposed}); ok {
			t.Errorf("%s: a remark behind it passes", test.name)
		}
		if _, ok := Added([]byte(strings.Replace(kept, "80", "81", 1)), now, []memory.Lesson{proposed}); ok {
			t.Errorf("%s: another entry may change", test.name)
		}
	}
	if _, ok := Added([]byte(kept), []byte(kept), []memory.Lesson{proposed}); ok {
		t.Error("nothing was added")
	}
}

// TestExactRestoresLineEnds reads files as git does that changes their line ends.
func TestExactRestoresLineEnds(t *testing.T) {
	returned := []byte(strings.ReplaceAll(kept, "\n", "\r\n"))
	more := must.Get(Append(returned, []memory.Lesson{{ID: "l-3", Claim: "c", Evidence: []string{"check:a"}, Run: "r", Date: "2026-01-31"}}))(t)
	other := bytes.Replace(more, []byte("80"), []byte("81"), 1)
	for name, test := range map[string]struct{ before, now, want []byte }{
		"as it was":            {returned, []byte(kept), returned},
		"the other way round":  {[]byte(kept), returned, []byte(kept)},
		"with a lesson behind": {returned, bytes.ReplaceAll(more, []byte("\r"), nil), more},
		"with a remark":        {returned, append([]byte(kept), "# and so\n"...), append([]byte(kept), "# and so\n"...)},
		"another entry":        {returned, other, other},
		"fewer":                {returned, []byte("version: 1\nlessons: []\n"), []byte("version: 1\nlessons: []\n")},
		"no file of lessons":   {returned, []byte("a: b\n"), []byte("a: b\n")},
	} {
		must.Same(t, test.want, RestoreLineEnds(test.before, test.now), name)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{kept, "", "version: 1\nlessons: []\n", "version: 1\nlessons: [&a {id: *a}]\n", "? - a\n: b\n", "version: 1\nlessons:\n- id: a\n"} {
		f.Add([]byte(seed))
	}
	more := []memory.Lesson{{ID: "zz-added", Claim: "c", Evidence: []string{"run:r"}, Run: "r", Date: "2026-01-31"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, problems := Parse(data)
		if len(problems) > 0 {
			return
		}
		for _, l := range all {
			if strings.ContainsAny(l.Claim+l.ID+l.Run, "\n\r\x00\u202e") || len(l.Claim) > maxClaim {
				t.Errorf("it has %q", l)
			}
		}
		after, err := Append(data, more)
		if err != nil {
			return
		}
		got, problems := Parse(after)
		must.Same(t, append(all, more...), got, problems)
		must.None(t, problems)
	})
}
