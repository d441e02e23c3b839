package testresults

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
)

// described is all that results tell.
func described(r *Results) string {
	var s strings.Builder
	for _, t := range r.Failing {
		fmt.Fprintf(&s, "fails %s\n  at %s:%d\n  says %s\n", t.Name, t.File, t.Line, t.Message)
		if t.AtThrowSite {
			s.WriteString("  perhaps in what it calls\n")
		}
		if t.LoadError {
			s.WriteString("  no test ran\n")
		}
	}
	var passed []string
	for name := range r.passed {
		passed = append(passed, name)
	}
	slices.Sort(passed)
	for _, name := range passed {
		fmt.Fprintf(&s, "passes %s\n", name)
	}
	skipped := slices.Sorted(maps.Keys(r.skipped))
	for _, name := range skipped {
		fmt.Fprintf(&s, "skips %s\n", name)
	}
	for _, kind := range []string{File, Package, Class} {
		for _, name := range slices.Sorted(slices.Values(r.Units(kind))) {
			fmt.Fprintf(&s, "ran %s %s\n", kind, name)
		}
	}
	for _, scope := range r.ran {
		fmt.Fprintf(&s, "all ran: %q\n", scope.prefix)
	}
	if r.hasAny() && !r.Complete() {
		s.WriteString("others may fail\n")
	}
	return s.String()
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(name))(t)
}

// read reads a file of testdata as what its name says.
func read(t testing.TB, name string) *Results {
	t.Helper()
	var got *Results
	var err error
	switch raw := bytes.NewReader(readFile(t, name)); {
	case strings.HasSuffix(name, ".xml"):
		got, err = ReadJUnit(raw)
	default:
		got, err = Read(t.Context(), raw, nil)
	}
	must.Do(t, err)
	return got
}

func outputs(t testing.TB) []string {
	t.Helper()
	texts := must.Get(filepath.Glob("testdata/*.txt"))(t)
	return append(texts, "testdata/junit.xml")
}

func TestReadsToolOutputs(t *testing.T) {
	for _, name := range outputs(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			golden.Compare(t, strings.TrimSuffix(name, filepath.Ext(name))+".golden", described(read(t, name)))
		})
	}
}

func TestBoundsReading(t *testing.T) {
	var many strings.Builder
	many.WriteString("1..15000\n")
	for i := range 3000 {
		fmt.Fprintf(&many, "not ok %d - %s %d\n", i, strings.Repeat("é", 1000), i)
	}
	for i := range 12_000 {
		fmt.Fprintf(&many, "not ok %d - short %d\n", i, i)
	}
	got, err := Read(t.Context(), strings.NewReader(many.String()), nil)
	if err != nil || len(got.Failing) != maxFailing || got.More != 2001 { // the long names are one
		t.Errorf("%d are listed and %d counted: %v", len(got.Failing), got.More, err)
	}
	wantTidy(t, got)
	line := strings.Repeat("x", 10<<20)
	must.Same(t, 1, len(must.Get(Read(t.Context(), strings.NewReader("--- FAIL: TestX (0.00s)\n    x_test.go:1: "+line+"\n"+line), nil))(t).Failing))
	must.Fail(t, "", must.Err(ReadJUnit(strings.NewReader(strings.Repeat("<testsuite>", 2000)+"x"+strings.Repeat("</testsuite>", 2000)))), "elements may be nested without end")
	must.Fail(t, "", must.Err(ReadJUnit(strings.NewReader(strings.Repeat(" ", MaxJUnit+1)))), "a report may be of any length")
}

// broken is an output at which reading panics.
type broken struct{}

func (broken) Read([]byte) (int, error) { panic("boom") }

func (broken) Seek(int64, int) (int64, error) { return 0, nil }

func TestReturnsPanicAsError(t *testing.T) {
	if told, err := Read(t.Context(), broken{}, nil); told != nil || err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v, %v", told, err)
	}
	if told, err := ReadJUnit(broken{}); told != nil || err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v, %v", told, err)
	}
}

// wantTidy fails where a name or a message is more than a short line that can be seen.
func wantTidy(t testing.TB, r *Results) {
	t.Helper()
	if len(r.Failing) > maxFailing {
		t.Errorf("%d are listed", len(r.Failing))
	}
	for _, test := range r.Failing {
		for _, text := range []string{test.Name, test.File, test.Message} {
			if len(text) > maxText+len("…") || strings.ContainsAny(text, "\x00\x1b\r\n\a") || !utf8.ValidString(text) {
				t.Errorf("%q", text)
			}
		}
		if test.Name == "" || test.Line < 0 || r.Passed(test.Name) {
			t.Errorf("%+v", test)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range outputs(f) {
		if raw := readFile(f, name); len(raw) < 4<<10 {
			f.Add(raw)
		}
	}
	for _, text := range []string{"# Subtest: \n", "not ok\n---\n", "FAIL a.js\n  ● \n", "=== RUN   \n", "1..1\nnot ok\n---\n  at:\n", "_____ _\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := must.Get(Read(t.Context(), bytes.NewReader(raw), nil))(t)
		wantTidy(t, got)
	})
}

func FuzzReadJUnit(f *testing.F) {
	f.Add(readFile(f, "testdata/junit.xml"))
	f.Add([]byte("<testsuite><testcase name='a'><error>&lt;<![CDATA[x]]></error></testcase></testsuite>"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := ReadJUnit(bytes.NewReader(raw)); err == nil {
			wantTidy(t, got)
		}
	})
}
