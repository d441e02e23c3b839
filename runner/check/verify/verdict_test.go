package verify

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// goFails prints what go test prints of a package with tests that fail, and is red.
func goFails(tests ...string) string {
	says := ""
	for _, name := range tests {
		says += "--- FAIL: " + name + " (0.00s)\\n    x_test.go:3: no\\n"
	}
	return "{ printf -- '" + says + "FAIL\\nFAIL\\tx\\t0.1s\\n'; exit 1; }"
}

const doesNotCompile = `{ printf '# x [x.test]\n./x.go:1:2: undefined: y\nFAIL\tx [build failed]\n'; exit 1; }`

// A check that fails for one reason and then for another is told with both.
func TestDistinguishesReasonsOfRedRuns(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	j := job.Job{Verify: []job.VerifyCheck{{
		Name: "t", Must: "pass", Rerun: 1,
		Run: "grep -q nobody greet || if test -e " + seen + "; then " + goFails("TestBroken", "TestBoth") + "; else touch " + seen + "; " + goFails("TestFlaky", "TestBoth") + "; fi",
	}}}
	checks := checksOn(t, j, map[string]string{"greet": "nobody\n"})
	baseline := must.Get(checks.Baseline(t.Context()))(t)
	apply(t, checks.Workspace.SandboxPath(), map[string]string{"greet": "world\n"})
	change := must.Get(checks.Workspace.Changes(t.Context()))(t)
	table := must.Get(checks.VerifyChange(t.Context(), 1, change, baseline.Rows))(t)
	var failing []string
	for _, test := range table.Rows[0].Failing {
		failing = append(failing, strings.TrimSpace(test.Name+" "+test.DescribeRuns()))
	}
	must.Same(t, []string{"x.TestFlaky only in run 1", "x.TestBoth", "x.TestBroken only in run 2"}, failing)
	words, err := checks.DescribeRed(table, "")
	if err != nil || !strings.Contains(words, "new failure only in run 2: x.TestBroken") || strings.Count(words, "output, whole in ") != 2 || !strings.Contains(words, "failed for different reasons") {
		t.Errorf("%v: %s", err, words)
	}
}

// What was red before may stay so with must: no_worse, and not get worse.
func TestReportsWorseThanRedBase(t *testing.T) {
	for name, c := range map[string]struct{ base, change, worse string }{
		"the same":                   {goFails("TestA"), goFails("TestA"), ""},
		"one fewer":                  {goFails("TestA", "TestB"), goFails("TestA"), ""},
		"another test":               {goFails("TestA"), goFails("TestA", "TestB"), "1 test failed that did not fail before"},
		"it does not compile":        {goFails("TestA"), doesNotCompile, "1 test failed that did not fail before"},
		"nor did it before":          {doesNotCompile, doesNotCompile, ""},
		"it does, and fails":         {doesNotCompile, goFails("TestA"), ""},
		"no names":                   {"exit 1", "exit 2", ""},
		"no names, does not compile": {"exit 1", "{ echo 'error[E0425]: cannot find it'; exit 1; }", "something does not compile or load that did before"},
		"names come":                 {"exit 1", doesNotCompile, "something does not compile or load that did before"},
		"no time":                    {"exit 1", "sleep 1000000", "it reached its timeout, which it did not before"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job.Job{Verify: []job.VerifyCheck{{Name: "t", Must: "no_worse", Run: "if grep -q nobody greet; then " + c.base + "; else " + c.change + "; fi"}}}
			base, change := map[string]string{"greet": "nobody\n"}, map[string]string{"greet": "world\n"}
			if name == "no time" {
				j.Verify[0].Timeout = job.Duration(2 * time.Second)
			}
			table := judged(t, j, time.Time{}, base, change)
			for name == "no time" && table.Rows[0].Before == "timeout" && j.Verify[0].Timeout < job.Duration(5*time.Minute) { // the base had no time either
				j.Verify[0].Timeout *= 2
				table = judged(t, j, time.Time{}, base, change)
			}
			if row := table.Rows[0]; row.Worse != c.worse || table.Passed != (c.worse == "") {
				t.Errorf("worse: %q, passed: %t, %q", row.Worse, table.Passed, row.DescribeTests())
			}
		})
	}
}

// A check that stays red proves by names, or says why it can't.
func TestClassifiesTestsOfRedCheck(t *testing.T) {
	const ok, no = `echo "ok 1 - adds"`, `echo "not ok 1 - adds"`
	tap := func(adds string) string {
		return "echo TAP version 13; " + adds + "; echo 'not ok 2 - other'; echo 1..2; exit 1"
	}
	for name, c := range map[string]struct{ base, change, want string }{
		"a test that the change fixes": {tap(no), tap(ok), "a.bats proven false"},
		"one that it does not fix":     {tap(no), tap(no), "a.bats unknown false what fails there is not told to pass with the change"},
		"no names":                     {"exit 1", "exit 1", "a.bats unknown false the check is red on the base without it too, and its output names no tests of it"},
	} {
		t.Run(name, func(t *testing.T) {
			j := proving("if grep -q nobody greet; then " + c.base + "; else " + c.change + "; fi")
			j.VerifyTests, j.Verify[0].Must = job.TestPatterns(), "no_worse"
			table := judged(t, j, time.Time{}, map[string]string{"greet": "nobody\n"}, map[string]string{"greet": "world\n", "a.bats": "@test \"adds\" {\n}\n"})
			must.Same(t, []string{c.want}, classes(table))
		})
	}
}

// A check says nothing of a test that it does not run.
func TestLeavesTestsOfOtherCheck(t *testing.T) {
	for name, c := range map[string]struct {
		file, text, output, want string
	}{
		"another package": {"b/b_test.go", "package b\n\nfunc TestB(t *testing.T) {}\n", `ok  \texample.com/m/a\t0.01s\n`, "unknown false not run by this check"},
		"its package":     {"a/a_test.go", "package a\n\nfunc TestA(t *testing.T) {}\n", `ok  \texample.com/m/a\t0.01s\n`, "not_red false"},
		"another runner":  {"test/b.test.js", "it('greets', f)\n", ` ✓ unit/a.test.js (3 tests) 2ms\n\n Test Files  1 passed (1)\n      Tests  3 passed (3)\n`, "unknown false not run by this check"},
		"its runner":      {"unit/a.test.js", "it('greets', f)\n", ` ✓ unit/a.test.js (3 tests) 2ms\n\n Test Files  1 passed (1)\n      Tests  3 passed (3)\n`, "not_red false"},
		"names of others": {"test/b.test.js", "it('greets', f)\n", `\n  ✔ adds\n\n  1 passing (2ms)\n`, "unknown false not run by this check"},
		"its names":       {"test/b.test.js", "it('greets', f)\n", `\n  ✔ greets\n\n  1 passing (2ms)\n`, "not_red false"},
		"no names":        {"test/b.test.js", "it('greets', f)\n", `fine\n`, "not_red false"},
	} {
		t.Run(name, func(t *testing.T) {
			j := proving("printf '" + c.output + "'")
			j.VerifyTests = job.TestPatterns()
			table := judged(t, j, time.Time{}, map[string]string{"go.mod": goModule, "greet": "nobody\n"}, map[string]string{"greet": "world\n", c.file: c.text})
			must.Same(t, []string{c.file + " " + c.want}, classes(table))
		})
	}
}

// Totals and tests that are named tell more than the look of an error.
func TestErrorOfTestedCodeIsNoLoadError(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"totals":         {"SyntaxError: unexpected token\nTests 20 failed | 130 passed\n", "proven"},
		"unittest":       {"ERROR: test_a (test_x.TestX)\nImportError: no module\n\nRan 3 tests in 0.1s\n\nFAILED (errors=1)\n", "proven"},
		"a file alone":   {"SyntaxError: unexpected token\n Test Files  1 failed (1)\n", "red_for_load_error"},
		"a look":         {"SyntaxError: unexpected token\n", "red_for_load_error"},
		"not an import":  {"ERROR: test_x (unittest.loader._FailedTest)\nImportError: no module\n\nRan 1 test in 0.1s\n\nFAILED (errors=1)\n", "red_for_load_error"},
		"another reason": {"boom\n", "proven"},
	} {
		t.Run(name, func(t *testing.T) {
			j := proving("grep -q world greet || ! test -e test_x.py || { printf '" + strings.ReplaceAll(c.output, "\n", `\n`) + "'; exit 1; }")
			j.VerifyTests = job.TestPatterns()
			table := judged(t, j, time.Time{}, map[string]string{"greet": "nobody\n"}, map[string]string{"greet": "world\n", "test_x.py": "def test_a(): pass\n"})
			must.Same(t, []string{"test_x.py " + c.want + " false"}, classes(table))
		})
	}
}

// Places are below the tree of the check, wherever that is.
func TestReportsPlacesOfTests(t *testing.T) {
	for name, c := range map[string]struct{ run, report, want string }{
		"a folder of Go":    {`printf -- '--- FAIL: TestRun (0.00s)\n    main_test.go:251: no\nFAIL\nFAIL\texample.com/m/cmd\t0.1s\n'`, "", "example.com/m/cmd.TestRun cmd/main_test.go:251"},
		"a module of Go":    {`printf -- '--- FAIL: TestRun (0.00s)\n    main_test.go:251: no\nFAIL\nFAIL\texample.com/sub/cmd\t0.1s\n'`, "", "example.com/sub/cmd.TestRun sub/cmd/main_test.go:251"},
		"another module":    {`printf -- '--- FAIL: TestRun (0.00s)\n    main_test.go:251: no\nFAIL\nFAIL\texample.org/x\t0.1s\n'`, "", "example.org/x.TestRun main_test.go:251"},
		"absolute in TAP":   {`printf "TAP version 13\n1..1\nnot ok 1 - $PWD/a.test.js\n  ---\n  location: 'file://$PWD/test/a.test.js:7:1'\n  ...\n"`, "", "a.test.js test/a.test.js:7"},
		"absolute in JUnit": {`echo "<testsuite><testcase classname=\"c\" name=\"a\" file=\"$PWD/tests/a.py\" line=\"3\"><failure message=\"no\"/></testcase></testsuite>" >r.xml`, "*.xml", "c.a tests/a.py:3"},
		"another path":      {`printf "TAP version 13\n1..1\nnot ok 1 - a\n  ---\n  location: '/mnt$PWD/a.js:7:1'\n  ...\n"`, "", "a /mnt"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job.Job{Verify: []job.VerifyCheck{{Name: "t", Must: "no_worse", Run: c.run + "; exit 1", JUnit: c.report}}}
			table := judged(t, j, time.Time{}, map[string]string{"go.mod": goModule, "sub/go.mod": "module example.com/sub\n"}, map[string]string{"greet": "world\n"})
			if failing := table.Rows[0].Failing; len(failing) != 1 || !strings.HasPrefix(failing[0].Name+" "+failing[0].Place(), c.want) || !table.Passed {
				t.Errorf("%+v, want %s", failing, c.want)
			}
		})
	}
}
