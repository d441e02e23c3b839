package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// said is what go test says where those tests fail.
func said(tests ...string) string {
	var s strings.Builder
	for _, name := range tests {
		s.WriteString("--- FAIL: " + name + " (0.00s)\n    x_test.go:3: no " + name + "\n")
	}
	return s.String() + "FAIL\tx\t0.1s\n"
}

// showRuns has a row tell of one run after the other, of which the first is on the base;
// empty output is that of a green run.
func showRuns(t *testing.T, checks Checks, outputs ...string) transcript.VerifyRow {
	t.Helper()
	var row transcript.VerifyRow
	for i, output := range outputs {
		name := filepath.Join("outputs", "verify.log")
		f, err := checks.Record.Create(name)
		if err == nil {
			_, err = f.WriteString(output)
		}
		must.Do(t, err)
		must.Do(t, f.Close())
		ran := confine.ScriptResult{ExitCode: min(len(output), 1)}
		if i == 0 {
			row = checks.newRow(0)
		}
		if i == 0 {
			err = checks.showBaseResult(t.Context(), &row, 0, resultOf(ran, name))
		} else {
			err = checks.showChangeResult(t.Context(), &row, 0, resultOf(ran, name), &gitops.ChangeSet{})
			row.After = ran.Color()
		}
		must.Do(t, err)
	}
	return row
}

func resultOf(ran confine.ScriptResult, log string) result {
	return result{state: ran.Color(), runs: []transcript.CheckRun{{State: ran.Color(), ExitCode: ran.ExitCode, Log: log}}}
}

func TestComparesTestsWithBase(t *testing.T) {
	checks := checksOf(t, job.Job{Verify: []job.VerifyCheck{{Name: "tests", Run: "x"}}})
	for name, c := range map[string]struct {
		outputs []string
		want    string
		fresh   []string
		mended  []string
	}{
		"the base":                  {[]string{said("TestA", "TestB")}, "2 failures", nil, nil},
		"a green one":               {[]string{""}, "", nil, nil},
		"green, then red":           {[]string{"", said("TestA")}, "1 new failure", []string{"x.TestA"}, nil},
		"red, then others":          {[]string{said("TestA", "TestB"), said("TestB", "TestC")}, "1 new failure, 1 other failure, 1 test fixed", []string{"x.TestC"}, []string{"x.TestA"}},
		"red, then green":           {[]string{said("TestA"), ""}, "1 test fixed", nil, []string{"x.TestA"}},
		"another attempt":           {[]string{said("TestA"), said("TestB"), said("TestA", "TestB")}, "1 new failure, 1 other failure", []string{"x.TestB"}, nil},
		"a red base without names":  {[]string{"boom\n", said("TestA")}, "1 failure", nil, nil},
		"it does not compile there": {[]string{"# x [x.test]\n./x.go:1:2: bad\nFAIL\tx [build failed]\n", said("TestA")}, "1 failure, 1 test fixed", nil, []string{"x [build failed]"}},
		"it panics there":           {[]string{"--- FAIL: TestA (0.00s)\npanic: boom\nFAIL\tx\t0.1s\n", said("TestB")}, "1 failure, 1 test fixed", nil, []string{"x.TestA"}},
	} {
		t.Run(name, func(t *testing.T) {
			row := showRuns(t, checks, c.outputs...)
			var fresh []string
			for _, test := range row.Failing {
				if test.New {
					fresh = append(fresh, test.Name)
				}
			}
			must.Same(t, c.want, row.DescribeTests())
			must.Same(t, c.fresh, fresh, "new")
			must.Same(t, c.mended, row.Fixed, "fixed")
			must.Same(t, (row.Tail == ""), c.outputs[len(c.outputs)-1] == "", row.Tail)
		})
	}
}

// A secret with what steers a terminal in it is whole once that is gone.
func TestShowsNoSecrets(t *testing.T) {
	checks := checksOf(t, job.Job{Verify: []job.VerifyCheck{{Name: "tests", Run: "x"}}})
	checks.Record.SetSecrets([]secrets.Value{{Name: "TOKEN", Secret: "hunter2hunter2"}})
	split := "hunter2\x1b[0mhunter2"
	row := showRuns(t, checks, "", "--- FAIL: Test"+split+" (0.00s)\n    x_test.go:3: "+split+"\n"+split+"\nFAIL\tx\t0.1s\n")
	if got := fmt.Sprint(row); strings.Contains(got, "hunter2hunter2") || strings.Count(got, "[secret TOKEN]") != 5 {
		t.Error(got)
	}
}

func TestListsFailingTestsForAgent(t *testing.T) {
	row := transcript.VerifyRow{FailingMore: 5, Fixed: []string{"x.TestA"}}
	must.Same(t, "", describeTests(transcript.VerifyRow{}), "of nothing")
	for range maxAgentTests + 2 {
		row.Failing = append(row.Failing, transcript.FailingTest{Name: "x.TestB", File: "x_test.go", Line: 3, Message: "no", New: true})
	}
	got := describeTests(row)
	if !strings.HasPrefix(got, "tests, from the output: 22 new failures, 5 other failures, 1 test fixed\n- new failure: x.TestB at x_test.go:3 says: no\n") ||
		strings.Count(got, "\n- new failure") != maxAgentTests || !strings.HasSuffix(got, "- and 7 more\n") {
		t.Error(got)
	}
}

func TestReadsCheckReports(t *testing.T) {
	const report = `<testsuite><testcase classname="c" name="NAME"><failure message="no"/></testcase></testsuite>`
	of := func(name string) string { return strings.ReplaceAll(report, "NAME", name) }
	for name, c := range map[string]struct {
		run  string
		want string // tests that fail
		warn string
	}{
		"two reports":        {"mkdir -p r; echo '" + of("a") + "' >r/1.xml; echo '<?xml version=\"1.0\"?>" + of("b") + "' >r/2.xml; exit 1", "c.a c.b", ""},
		"one that was there": {"exit 1", "", ""},
		"that, written anew": {"echo '" + of("another") + "' >r/old.xml; exit 1", "c.another", ""},
		"none":               {"echo '--- FAIL: TestX (0.00s)'; exit 1", "TestX", ""},
		"a pipe and a link":  {"mkfifo r/a.xml; ln -s old.xml r/b.xml; ln -s / r/c.xml; exit 1", "", ""},
		"no report":          {"echo '<a' >r/a.xml; exit 1", "", "Of the reports of tests, 1 can't be read: r/a.xml: "},
		"too long a one":     {"head -c 9000000 /dev/zero >r/a.xml; exit 1", "", "Of the reports of tests, 1 can't be read: "},
		"as long as may be":  {"{ echo '" + of("long") + "'; head -c 8388608 /dev/zero | tr '\\0' ' '; } | head -c " + strconv.Itoa(testresults.MaxJUnit-len(reportsUnread)) + " >r/a.xml; exit 1", "c.long", ""},
		"two, one too long":  {"echo '" + of("a") + "' >r/1.xml; head -c 9000000 /dev/zero >r/2.xml; exit 1", "c.a", "Of the reports of tests, 1 can't be read: "},
		"too many":           {"for i in $(seq 600); do echo x >r/$i.xml; done; exit 1", "", "there are more than 500"},
	} {
		t.Run(name, func(t *testing.T) {
			checks := checksOf(t, job.Job{Verify: []job.VerifyCheck{{Name: "tests", Run: c.run, JUnit: "r/*.xml"}}})
			must.Do(t, os.Mkdir(filepath.Join(checks.Workspace.SandboxPath(), "r"), 0o755))
			write(t, checks.Workspace.SandboxPath(), "r/old.xml", of("old"))
			must.Do(t, errors.Join(checks.Workspace.TakeSnapshot(t.Context()), checks.Workspace.CopyUntracked(t.Context())))
			suite := checks.newSuite(0, checks.Workspace.Base(), checks.Workspace.Base().Tree)
			script := checks.scriptFor(suite, 0, "outputs/verify.log")
			ran := must.Get(checks.runCheck(t.Context(), suite, script, 0))(t)
			row := checks.newRow(0)
			must.Do(t, checks.showBaseResult(t.Context(), &row, 0, resultOf(ran, script.Log)))
			var failing []string
			for _, test := range row.Failing {
				failing = append(failing, test.Name)
			}
			must.Same(t, c.want, strings.Join(failing, " "))
			var warned strings.Builder
			for _, w := range checks.Record.Warnings() {
				warned.WriteString(w.Message + "\n")
			}
			if !strings.Contains(warned.String(), c.warn) || c.warn == "" && warned.Len() > 0 {
				t.Errorf("warned of %q, want %q", warned.String(), c.warn)
			}
		})
	}
}
