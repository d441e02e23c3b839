package testresults

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// changeSince is what an output, or a report, tells of a test that failed before.
func changeSince(t *testing.T, failed, output string) (Change, *Results) {
	t.Helper()
	now, err := Read(t.Context(), strings.NewReader(output), nil)
	if strings.HasPrefix(output, "<") {
		now, err = ReadJUnit(strings.NewReader(output))
	}
	must.Do(t, err)
	return Compare(beforeOf([]string{failed}), now, true), now
}

const pytestBegins = "==== test session starts ====\n"

func TestCountsNoUnrunTestAsFixed(t *testing.T) {
	for name, c := range map[string]struct{ failed, output string }{
		"go, another package":      {"example.com/yaml.v3.TestX", "ok  \texample.com/yaml\t0.01s\n"},
		"go, a package below":      {"example.com/yaml.v3/sub.TestX", "ok  \texample.com/yaml\t0.01s\n"},
		"go, no tests to run":      {"p.TestX", "ok  \tp\t0.01s [no tests to run]\n"},
		"go -v, gone":              {"p.TestX", "=== RUN   TestY\n--- PASS: TestY (0.00s)\nPASS\nok  \tp\t0.01s\n"},
		"go -v, skipped":           {"p.TestX", "=== RUN   TestX\n--- SKIP: TestX (0.00s)\nPASS\nok  \tp\t0.01s\n"},
		"go -json, skipped":        {"p.TestX", `{"Action":"skip","Package":"p","Test":"TestX"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n"},
		"go -json, gone":           {"p.TestX", `{"Action":"pass","Package":"p","Test":"TestY"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n"},
		"go -json, no test files":  {"p", `{"Action":"skip","Package":"p"}` + "\n"},
		"go, no test files":        {"p.TestX", "?   \tp\t[no test files]\n"},
		"pytest, another file":     {"test_a.py::test_x", pytestBegins + "test_b.py .  [100%]\n==== 1 passed in 0.01s ====\n"},
		"pytest, no file":          {"test_a.py::test_x", "==== 1 passed in 0.01s ====\n"},
		"pytest, skipped":          {"test_a.py::test_x", pytestBegins + "test_a.py ..s.  [100%]\n==== 3 passed, 1 skipped in 0.01s ====\n"},
		"pytest, skipped later on": {"test_a.py::test_x", pytestBegins + "test_a.py ....  [ 80%]\ns  [100%]\n==== 4 passed, 1 skipped in 0.01s ====\n"},
		"pytest -v, skipped":       {"test_a.py::test_x", pytestBegins + "test_a.py::test_x SKIPPED (no) [100%]\n==== 1 skipped in 0.01s ====\n"},
		"pytest -v, gone":          {"test_a.py::test_x", pytestBegins + "test_a.py::test_y PASSED [100%]\n==== 1 passed in 0.01s ====\n"},
		"pytest -v, xfail":         {"test_a.py::test_x", pytestBegins + "test_a.py::test_x XFAIL (later) [100%]\n==== 1 xfailed in 0.01s ====\n"},
		"pytest, deselected":       {"test_a.py::test_x", pytestBegins + "test_a.py .  [100%]\n==== 1 passed, 1 deselected in 0.01s ====\n"},
		"pytest, no tests":         {"test_a.py::test_x", pytestBegins + "==== no tests ran in 0.01s ====\n"},
		"jest, skipped":            {"./a.test.js › x", "PASS ./a.test.js\n  ○ skipped x\n\nTests:       1 skipped, 1 total\n"},
		"jest, todo":               {"./a.test.js › x", "PASS ./a.test.js\n  ✓ y\n  ✎ todo x\n\nTests:       1 todo, 1 passed, 2 total\n"},
		"jest, skipped somewhere":  {"./a.test.js › x", "PASS ./a.test.js\nPASS ./b.test.js\n\nTests:       1 skipped, 3 passed, 4 total\n"},
		"jest, gone":               {"./a.test.js › x", "PASS ./a.test.js\n  ✓ y\n\nTests:       1 passed, 1 total\n"},
		"tap, skipped":             {"a", "TAP version 13\n1..1\nok 1 - a # SKIP\n"},
		"tap, todo":                {"a", "TAP version 13\n1..1\nok 1 - a # TODO later\n"},
		"tap, gone":                {"a", "TAP version 13\n1..1\nok 1 - b\n"},
		"tap, none":                {"a", "TAP version 13\n1..0 # SKIP\n"},
		"junit, skipped":           {"a", `<testsuite><testcase name="a"><skipped/></testcase></testsuite>`},
		"junit, gone":              {"a", `<testsuite><testcase name="b"/></testsuite>`},
		"junit, none":              {"a", `<testsuite></testsuite>`},
		"a skip of the same name":  {"a", "TAP version 13\n1..2\nok 1 - a\nok 2 - a # SKIP\n"},
	} {
		got, now := changeSince(t, c.failed, c.output)
		must.Same(t, Change{}, got, name)
		must.Same(t, true, now.hasAny(), name, "is unknown")
		must.Same(t, false, now.Passed(c.failed), name, "passed")
	}
}

func TestCountsPassedTestAsFixed(t *testing.T) {
	for name, c := range map[string]struct {
		failed, output string
		silent         bool
	}{
		"go":              {"p.TestX/a.b", "ok  \tp\t0.01s\n", true},
		"go -v":           {"p.TestX", "=== RUN   TestX\n--- PASS: TestX (0.00s)\nPASS\nok  \tp\t0.01s\n", false},
		"go -json":        {"p.TestX", `{"Action":"pass","Package":"p","Test":"TestX"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n", false},
		"go, it compiles": {"p [build failed]", "ok  \tp\t0.01s\n", true},
		"pytest":          {"test_a.py::test_x", pytestBegins + "test_b.py s [ 50%]\ntest_a.py .. [100%]\n==== 2 passed, 1 skipped in 0.01s ====\n", true},
		"pytest -v":       {"test_a.py::test_x[a - b]", pytestBegins + "test_a.py::test_x[a - b] PASSED [100%]\n==== 1 passed in 0.01s ====\n", false},
		"pytest, it runs": {"test_a.py", pytestBegins + "test_a.py .. [100%]\n==== 2 passed in 0.01s ====\n", false},
		"jest":            {"./a.test.js › x", "PASS ./a.test.js\n\nTests:       1 passed, 1 total\n", true},
		"jest --verbose":  {"./a.test.js › g › x", "PASS ./a.test.js\n  g\n    ✓ x (2 ms)\n    ○ skipped y\n\nTests:       1 skipped, 1 passed, 2 total\n", false},
		"tap":             {"a", "TAP version 13\n1..1\nok 1 - a\n", false},
		"junit":           {"s.a", `<testsuite name="s"><testcase name="a"/></testsuite>`, false},
		"nothing at all":  {"a", "done\n", true},
	} {
		want := Change{Fixed: []string{c.failed}}
		if c.silent {
			want = Change{Silent: []string{c.failed}}
		}
		got, _ := changeSince(t, c.failed, c.output)
		must.Same(t, want, got, name)
	}
}

func TestMarksIncompleteResults(t *testing.T) {
	const all, some = true, false
	for name, c := range map[string]struct {
		output   string
		complete bool
	}{
		"go":                     {"--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tp\t0.1s\nFAIL\n", all},
		"go, one by itself":      {"--- FAIL: TestA (0.00s)\nFAIL\n", all},
		"go, stopped":            {"--- FAIL: TestA (0.00s)\n", some},
		"go, a panic":            {"--- FAIL: TestA (0.00s)\npanic: boom [recovered]\n\ngoroutine 1 [running]:\nFAIL\tp\t0.010s\nFAIL\n", some},
		"go, no build":           {"--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tp\t0.1s\nFAIL\tq [build failed]\nFAIL\n", some},
		"go, an exit":            {"FAIL\tp\t0.1s\nFAIL\n", some},
		"go -json":               {`{"Action":"fail","Package":"p","Test":"T"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n", all},
		"go -json, stopped":      {`{"Action":"fail","Package":"p","Test":"T"}` + "\n", some},
		"pytest":                 {"= short test summary info =\nFAILED a.py::t - x\n= 1 failed in 0.1s =\n", all},
		"pytest -x":              {"= short test summary info =\nFAILED a.py::t - x\n!!!! stopping after 1 failures !!!!\n= 1 failed in 0.1s =\n", some},
		"pytest, stopped":        {"= short test summary info =\nFAILED a.py::t - x\n", some},
		"pytest, not all named":  {"= short test summary info =\nFAILED a.py::t - x\n= 2 failed in 0.1s =\n", some},
		"pytest, a broken file":  {"= short test summary info =\nERROR a.py - x\n= 1 error in 0.1s =\n", some},
		"tap":                    {"1..2\nnot ok 1 - a\nok 2\n", all},
		"tap, its plan last":     {"TAP version 13\nnot ok 1 - a\nok 2\n1..2\n", all},
		"tap, stopped":           {"1..2\nnot ok 1 - a\n", some},
		"tap, no plan":           {"TAP version 13\nnot ok 1 - a\n", some},
		"tap, bails out":         {"1..1\nnot ok 1 - a\nBail out! no database\n", some},
		"jest":                   {"FAIL a.test.js\n  ● x\n\n    no\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n", all},
		"jest --bail":            {"FAIL a.test.js\n  ● x\n\n    no\n\nTest Suites: 1 failed, 1 of 3 total\nTests:       1 failed, 1 total\n", some},
		"jest, a broken file":    {"FAIL a.test.js\n  ● Test suite failed to run\n\n    no\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n", some},
		"a report":               {`<testsuite><testcase name="a"><failure/></testcase></testsuite>`, all},
		"reports, not all":       {`<testsuite><testcase name="a"><failure/></testcase></testsuite><!--` + Unread + `-->`, some},
		"a report, a broken one": {`<testsuite><testcase name="a"><error message="collection failure"/></testcase></testsuite>`, some},
		"nothing":                {"boom\n", some},
	} {
		if _, now := changeSince(t, "x", c.output); now.Complete() != c.complete {
			t.Errorf("%s: complete: %v", name, now.Complete())
		}
	}
}
