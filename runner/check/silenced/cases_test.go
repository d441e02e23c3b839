package silenced

import (
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/check/lines"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

type silencing struct {
	is   bool
	diff lines.Diff
	at   string // line of the file, for messages
}

func readCases(t *testing.T) (all []silencing) {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/cases.txt"))(t)
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasSuffix(line, ":") && (line[0] == '+' || line[0] == '-'):
			all = append(all, silencing{is: line[0] == '+', at: line, diff: lines.Diff{Files: []lines.File{{Path: line[2 : len(line)-1]}}}})
		default:
			f := &all[len(all)-1].diff.Files[0]
			to := &f.Added
			if line[0] == '<' {
				to = &f.Removed
			}
			before := ""
			if n := len(*to); n > 0 {
				before = strings.TrimSpace((*to)[n-1].Text)
			}
			*to = append(*to, lines.Line{Number: len(*to) + 1, Text: line[2:], Before: before})
		}
	}
	return all
}

// TestFindsSilencingInCases: of 60 changes that silence a check all are found, of 60 that look alike at most 2.
func TestFindsSilencingInCases(t *testing.T) {
	count, wrong := map[bool]int{}, 0
	for _, c := range readCases(t) {
		count[c.is]++
		found, _, err := Find(&c.diff)
		must.Do(t, err)
		switch {
		case c.is && len(found) == 0:
			t.Errorf("not found: %s %+v", c.at, c.diff.Files[0].Added)
		case !c.is && len(found) > 0:
			wrong++
			t.Logf("found and no sign: %s %+v", c.at, found)
		}
	}
	if count[true] != 60 || count[false] != 60 || wrong > 2 {
		t.Errorf("%d cases and %d that look alike, of which %d were found", count[true], count[false], wrong)
	}
}

func TestFindsRewrittenSnapshots(t *testing.T) {
	many := func(n int, text string) (all []lines.Line) {
		for i := range n {
			all = append(all, lines.Line{Number: i + 1, Text: text})
		}
		return all
	}
	moved := []lines.Line{{Number: 4, Text: `	t.Skip("x")`, Before: "func TestA(t *testing.T) {"}}
	other := []lines.Line{{Number: 4, Text: `	t.Skip("x")`, Before: "func TestB(t *testing.T) {"}}
	for name, c := range map[string]struct {
		files []lines.File
		want  int
	}{
		"a snapshot rewritten":         {[]lines.File{{Path: "a/__snapshots__/a.snap", Removed: many(20, "a"), Added: many(20, "b")}}, 1},
		"a snapshot deleted":           {[]lines.File{{Path: "a.snap", Removed: many(20, "a")}}, 1},
		"a snapshot with a few lines":  {[]lines.File{{Path: "a.snap", Removed: many(4, "a"), Added: many(4, "b")}}, 0},
		"a new snapshot":               {[]lines.File{{Path: "a.snap", Added: many(400, "b")}}, 0},
		"a skip that moved":            {[]lines.File{{Path: "a_test.go", Removed: moved}, {Path: "b_test.go", Added: moved}}, 0},
		"a skip in another test":       {[]lines.File{{Path: "a_test.go", Removed: moved, Added: other}}, 1},
		"one skip moved, and one more": {[]lines.File{{Path: "a_test.go", Removed: moved}, {Path: "b_test.go", Added: append(moved, moved...)}}, 1},
		"a file that is a sign":        {[]lines.File{{Path: "pytest.py", Added: many(60, "x = 1")}}, 1},
		"a module of that name":        {[]lines.File{{Path: "app/plugins/pytest.py", Added: many(1, "x = 1")}}, 0},
		"a folder of that name":        {[]lines.File{{Path: "tests/unittest/test_a.py", Added: many(1, "x = 1")}}, 0},
		"more than are listed":         {[]lines.File{{Path: "a_test.go", Added: many(60, "	t.Skip()")}}, 60},
		"more weak ones":               {[]lines.File{{Path: ".gitattributes", Added: many(60, "*.png binary")}}, 50},
		"a strong one after weak ones": {[]lines.File{{Path: ".gitattributes", Added: many(60, "*.png binary")}, {Path: "a_test.go", Added: many(60, "	t.Skip()")}}, 60},
	} {
		found, more, err := Find(&lines.Diff{Files: c.files})
		if err != nil || len(found)+more != c.want || len(found) > maxFound {
			t.Errorf("%s: %d and %d more, %v", name, len(found), more, err)
		}
	}
}

func TestObserve(t *testing.T) {
	row := func(before, after string, seconds float64, log string) []transcript.VerifyRow {
		return []transcript.VerifyRow{{Name: "t", Before: before, After: after, Seconds: seconds, Log: log}}
	}
	outputs := map[string]string{
		"12": "===== 12 passed in 3.21s =====\n", "3": "3 passed in 0.01s\n", "none": "no tests ran in 0.01s\n", "other": "all well\n", "cached": "ok  \ta\t(cached)\n", "0of2": "test result: ok. 0 passed; 0 failed; 0 ignored\n",
		"2and3": "test result: ok. 2 passed; 0 failed; 0 ignored\n\ntest result: ok. 3 passed; 0 failed; 0 ignored\n", "go": "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\n",
	}
	for name, c := range map[string]struct {
		base, now []transcript.VerifyRow
		want      string
	}{
		"fewer":                        {row("green", "", 1, "12"), row("green", "green", 1, "3"), "fewer-tests 12 tests ran on the base, 3 with the change"},
		"none any more":                {row("green", "", 1, "12"), row("green", "green", 1, "none"), "fewer-tests 12 tests ran on the base, 0 with the change"},
		"an output without tests":      {row("green", "", 1, "12"), row("green", "green", 1, "other"), "fewer-tests 12 tests ran on the base, and the output tells of none with the change"},
		"added up":                     {row("green", "", 1, "2and3"), row("green", "green", 1, "0of2"), "fewer-tests 5 tests ran on the base, 0 with the change"},
		"by their names":               {row("green", "", 1, "go"), row("green", "green", 1, "other"), "fewer-tests 2 tests ran on the base, and the output tells of none with the change"},
		"more":                         {row("green", "", 1, "3"), row("green", "green", 1, "12"), ""},
		"as many, and quick":           {row("green", "", 100, "12"), row("green", "green", 1, "12"), ""},
		"quick":                        {row("green", "", 10, "other"), row("green", "green", 1, "other"), "quick it took 10.0 s on the base, 1.0 s with the change"},
		"quick, and short on the base": {row("green", "", 9.9, "other"), row("green", "green", 0.1, "other"), ""},
		"quick, and not enough":        {row("green", "", 10, "other"), row("green", "green", 1.1, "other"), ""},
		"quick, from a cache":          {row("green", "", 60, "other"), row("green", "green", 0.1, "cached"), ""},
		"red on the base":              {row("red", "", 60, "12"), row("red", "green", 0.1, "3"), ""},
		"red with the change":          {row("green", "", 60, "12"), row("green", "red", 0.1, "3"), ""},
		"no check of the name":         {nil, row("green", "green", 0.1, "3"), ""},
		"no output of the change":      {row("green", "", 1, "12"), row("green", "green", 1, "missing"), ""},
	} {
		got := ""
		for _, s := range Observe(c.base, c.now, func(log string) string { return outputs[log] }) {
			got += s.Pattern + " " + s.Reason
			if s.Check != "t" || s.Weak != (s.Pattern == "quick") {
				t.Errorf("%s: %+v", name, s)
			}
		}
		must.Same(t, c.want, got, name)
	}
}
