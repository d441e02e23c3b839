package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// proofCase is a change whose tests are judged. A file of the change that is "-" is removed.
type proofCase struct {
	name, run    string
	base, change map[string]string
	classes, old []string
	unknown      string // why more is not known of tests of the base
}

const (
	goModule = "module example.com/m\n\ngo 1.21\n"
	one      = "package p\n\nfunc F() int { return 1 }\n"
	two      = "package p\n\nfunc F() int { return 2 }\n"
	three    = "package p\n\nfunc F() int { return 3 }\n"
)

// goTests is a file of tests of Go, each with a body.
func goTests(tests ...string) string {
	text := "package p\n\nimport \"testing\"\n"
	for i := 0; i < len(tests); i += 2 {
		text += fmt.Sprintf("\nfunc %s(t *testing.T) { %s }\n", tests[i], tests[i+1])
	}
	return text
}

// pytestFails prints what pytest prints of a failing test, and is red.
func pytestFails(id string) string {
	return "{ printf '=== short test summary info ===\\nFAILED " + id + " - no\\n=== 1 failed in 0.1s ===\\n'; exit 1; }"
}

func TestClassifiesProofs(t *testing.T) {
	for _, c := range append(goProofs("go test ./..."), otherProofs()...) {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasPrefix(c.run, "go ") && os.Getenv("AGENT_CI_E2E") == "" {
				t.Skip("runs go test many times; make e2e has it run")
			}
			j := job.Job{VerifyTests: job.TestPatterns(), Verify: []job.VerifyCheck{{Name: "t", Run: c.run, Must: "pass", Proves: "true"}}}
			table := judged(t, j, time.Time{}, c.base, c.change)
			must.Same(t, c.classes, classes(table))
			must.Same(t, c.old, oldOf(table))
			must.Same(t, c.unknown, table.OldTestsGap(), "not known")
		})
	}
}

// judged is the table of a change of a base.
func judged(t *testing.T, j job.Job, until time.Time, base, change map[string]string) transcript.Verify {
	t.Helper()
	checks := checksOn(t, j, base)
	baseline := must.Get(checks.Baseline(t.Context()))(t)
	apply(t, checks.Workspace.SandboxPath(), change)
	found := must.Get(checks.Workspace.Changes(t.Context()))(t)
	checks.ProofDeadline = until
	return must.Get(checks.VerifyChange(t.Context(), 1, found, baseline.Rows))(t)
}

// apply makes a change in a folder: it deletes files with the content "-" first, and makes links for "-> TARGET".
func apply(t *testing.T, root string, change map[string]string) {
	t.Helper()
	for name, content := range change {
		if content != "-" {
			continue
		}
		must.Do(t, os.Remove(filepath.Join(root, name)))
	}
	for name, content := range change {
		path := filepath.Join(root, name)
		if content == "-" {
			continue
		}
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		target, isLink := strings.CutPrefix(content, "-> ")
		if !isLink {
			write(t, root, name, content)
			continue
		}
		must.Do(t, os.Symlink(target, path))
	}
}

func oldOf(table transcript.Verify) (all []string) {
	for _, o := range table.BrokenOldTests() {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s:%d %s %s", o.File, o.Line, o.Name, o.DescribeState())))
	}
	slices.Sort(all)
	return all
}

func goProofs(run string) []proofCase {
	helped := goTests("TestOne", "if F() < 1 { t.Fatal() }")
	return []proofCase{
		{
			"a helper that a new test uses", run,
			map[string]string{"go.mod": goModule, "p/p.go": one, "p/helper_test.go": helped},
			map[string]string{"p/p.go": two, "p/helper_test.go": helped + "\nfunc is(t *testing.T, a, b int) { if a != b { t.Fatal(a) } }\n", "p/new_test.go": goTests("TestTwo", "is(t, F(), 2)")},
			[]string{"p/helper_test.go not_red false", "p/new_test.go proven false"},
			nil, "",
		}, {
			"a file that is moved in its package", run,
			map[string]string{"go.mod": goModule, "p/p.go": one, "p/a_test.go": helped},
			map[string]string{"p/p.go": two, "p/a_test.go": "-", "p/b_test.go": helped + "\nfunc TestVacuous(t *testing.T) {}\n"},
			[]string{"p/b_test.go not_red false"},
			nil, "",
		}, {
			"a test that is weakened where it was red", run,
			map[string]string{"go.mod": goModule, "p/p.go": one, "p/a_test.go": goTests("TestF", "if F() != 2 { t.Fatal(F()) }")},
			map[string]string{"p/p.go": three, "p/a_test.go": goTests("TestF", "if F() != 3 { t.Fatal(F()) }")},
			[]string{"p/a_test.go proven false"},
			[]string{"p/a_test.go:5 TestF fails on the change"},
			"",
		}, {
			"tests of one name in packages and modules", run,
			map[string]string{"go.mod": goModule, "r.go": "package p\n", "a/p.go": "package p\n", "x/a/p.go": one},
			map[string]string{
				"x/a/p.go": two, "x/a/a_test.go": goTests("TestF", "if F() != 2 { t.Fatal(F()) }"), "r_test.go": goTests("TestF", ""), "a/a_test.go": goTests("TestF", ""),
				"x/a/b_test.go": goTests("TestV", "") + "// as func TestF(t) has it\n",
			},
			[]string{"a/a_test.go not_red false", "r_test.go not_red false", "x/a/a_test.go proven false", "x/a/b_test.go not_red false"},
			nil, "",
		}, {
			"a test that goes while another file has its name", run,
			map[string]string{"go.mod": goModule, "a/p.go": one, "a/a_test.go": goTests("TestParse", "if F() < 1 { t.Fatal() }", "TestOther", ""), "b/p.go": "package p\n", "b/b_test.go": goTests("TestParse", "")},
			map[string]string{"a/p.go": "package p\n\nfunc F() int { return 0 }\n", "a/a_test.go": goTests("TestOther", ""), "b/b_test.go": goTests("TestParse", "_ = 1")},
			[]string{"a/a_test.go not_red false", "b/b_test.go not_red false"},
			[]string{"a/a_test.go:5 TestParse deleted, and fails on the change"},
			"",
		},
	}
}

func otherProofs() []proofCase {
	nobody, world := map[string]string{"greet": "nobody\n"}, "world\n"
	fileAlone := func(file string) string { return "grep -q world greet || ! test -e " + file }
	all := []proofCase{
		{
			"data that is altered to fit", `sh tests/run_test.sh`,
			map[string]string{"say.sh": "echo hello", "tests/run_test.sh": `test "$(sh say.sh)" = "$(cat tests/testdata/want.txt)"`, "tests/testdata/want.txt": "hello\n"},
			map[string]string{"say.sh": "echo bye", "tests/testdata/want.txt": "bye\n"},
			nil,
			[]string{"tests/testdata/want.txt:0  fails on the change"},
			"",
		}, {
			"files that need each other", "for f in *_test.sh; do test ! -e $f || sh ./$f >/dev/null 2>&1 || exit 1; done",
			nobody,
			map[string]string{"greet": world, "a_test.sh": ". ./helper_test.sh; has world", "b_test.sh": ". ./helper_test.sh; has o", "helper_test.sh": "has() { grep -q $1 greet; }"},
			[]string{
				"a_test.sh proven true the output is not matched to files",
				"b_test.sh proven true the output is not matched to files",
				"helper_test.sh proven true the output is not matched to files",
			},
			nil, "",
		}, {
			"a name that begins another one", `for f in *.bats; do test -e $f || continue; sed -n 's/^@test "\(.*\)" { \(.*\)$/\1;\2/p' $f | while IFS=';' read -r name code; do if sh -c "$code"; then echo "ok 1 $name"; else echo "not ok 1 $name"; touch red; fi; done; done; echo 1..2; ! test -e red`,
			nobody,
			map[string]string{"greet": world, "a.bats": "@test \"adds\" { grep -q world greet\n", "b.bats": "@test \"adds nothing\" { true\n"},
			[]string{"a.bats proven false", "b.bats not_red false"},
			nil, "",
		}, {
			"paths from where a tool was started", `for d in one two; do (cd $d; grep -q world greet || ! grep -q world tests/test_a.py 2>/dev/null || ` + pytestFails("tests/test_a.py::test_a") + `) || touch red; done; ! test -e red`,
			map[string]string{"one/greet": "nobody\n", "two/greet": "nobody\n"},
			map[string]string{"one/greet": world, "one/tests/test_a.py": "def test_a(): world\n", "two/tests/test_a.py": "def test_a(): pass\n"},
			[]string{"one/tests/test_a.py proven true the output is not matched to files", "two/tests/test_a.py proven true the output is not matched to files"},
			nil, "",
		}, {
			"a file of the same name that the change has not", "grep -q world greet || " + pytestFails("sub/test_a.py::test_a"),
			map[string]string{"greet": "nobody\n", "sub/test_a.py": "def test_a(): world\n"},
			map[string]string{"greet": world, "test_a.py": "def test_v(): pass\n"},
			[]string{"test_a.py unknown false the check is red on the base without it too, and its output names no tests of it"},
			nil, "",
		}, {
			"the test that is meant", `sh greet.sh >out; w=$(sed -n 's/.*test_a: //p' test_x.py); grep -q "$w" out || ` + pytestFails("test_x.py::test_a"),
			map[string]string{"greet.sh": "echo hello\n", "test_x.py": "def test_a():\n    # test_a: hello\n    pass\n\ndef test_ab():\n    pass\n"},
			map[string]string{"greet.sh": "echo bye\n", "test_x.py": "def test_a():\n    # test_a: bye\n    pass\n\ndef test_ab():\n    pass\n"},
			[]string{"test_x.py proven false"},
			[]string{"test_x.py:1 test_a fails on the change"},
			"",
		}, {
			"a file that is only moved", "true",
			map[string]string{"greet": "nobody\n", "a_test.sh": "true # same\n"},
			map[string]string{"greet": world, "a_test.sh": "-", "sub/a_test.sh": "true # same\n"},
			nil, nil, "",
		}, {
			"files that help tests", "! test -e tests/test_a.py || grep -q world greet || " + pytestFails("tests/test_a.py::test_a"),
			nobody,
			map[string]string{"greet": world, "tests/test_a.py": "def test_a(): pass\n", "tests/helpers.py": "def help(): pass\n", "tests/Dockerfile": "FROM x\n"},
			[]string{"tests/test_a.py proven false"},
			nil, "",
		}, {
			"a folder for a file", "! test -e tests/a_test.sh || sh tests/a_test.sh",
			map[string]string{"greet": "nobody\n", "parts": "a file\n"},
			map[string]string{"greet": world, "parts": "-", "parts/a_test.sh": "grep -q world greet", "tests/a_test.sh": "grep -q world greet"},
			[]string{"parts/a_test.sh proven true the output is not matched to files", "tests/a_test.sh proven true the output is not matched to files"},
			nil, "",
		}, {
			"words of a failure that sound like loading", "! test -e a_test.sh || sh ./a_test.sh || { echo 'expected a SyntaxError, got none'; exit 1; }",
			nobody,
			map[string]string{"greet": world, "a_test.sh": "grep -q world greet"},
			[]string{"a_test.sh proven false"},
			nil, "",
		}, {
			"packages with and without tests", `printf 'ok  \tm/a\t0.01s\tcoverage: 80.0%% of statements\nok  \tm/b\t0.01s\tcoverage: [no statements] [no tests to run]\n'`,
			nobody,
			map[string]string{"greet": world, "a/a_test.go": "func TestA(t) {}\n"},
			[]string{"a/a_test.go not_red false"},
			nil, "",
		},
	}
	for file, text := range map[string]string{
		"test/greet_test.rb":   "class GreetTest < ActiveSupport::TestCase\n  test \"greets\" do\n  end\nend\n",
		"greet_test.go":        "package p\n\nvar _ = Describe(\"greet\", func() { It(\"greets\", func() {}) })\n",
		"greet.test.js":        "it.each([[1, 2]])('greets %i', () => {})\n",
		"tests/GreetTest.php":  "<?php\nit('greets', function () {});\n",
		"tests/greet.rs":       "#[tokio::test(flavor = \"multi_thread\")]\nasync fn greets() {}\n",
		"spec/greet_spec.rb":   "describe Greet do\n  it { is_expected.to be }\nend\n",
		"tests/greet_test.exs": "test \"greets\" do end\n",
	} {
		all = append(all, proofCase{"by the exit status " + filepath.Base(file), fileAlone(file), nobody, map[string]string{"greet": world, file: text}, []string{file + " proven false"}, nil, ""})
	}
	return all
}

// A runner that stops at the first failure says nothing of the others.
func TestProofOfUnrunTests(t *testing.T) {
	run := "for f in *_test.py; do test -e $f || continue; sh ./$f || " + pytestFails("'$f'::test_a") + "; done"
	change := map[string]string{"greet": "world\n"}
	const files = 12
	for i := range files {
		change[fmt.Sprintf("f%02d_test.py", i)] = fmt.Sprintf("grep -q world greet || exit 1 # %d\nexit 0\ndef test_a(): pass\n", i)
	}
	j := job.Job{VerifyTests: job.TestPatterns(), Verify: []job.VerifyCheck{{Name: "t", Run: run, Must: "pass", Proves: "true"}}}
	all := judged(t, j, time.Time{}, map[string]string{"greet": "nobody\n"}, change).BestProofs()
	if len(all) != files || all[0].Class != transcript.Proven {
		t.Fatalf("%+v", all)
	}
	for _, p := range all[1:] {
		if p.Class != transcript.Unknown || !p.Shared {
			t.Errorf("%+v", p)
		}
	}
}

// A base on which the check is flaky proves nothing by its exit status, also where that is
// accepted.
func TestProofOnFlakyBase(t *testing.T) {
	n := filepath.Join(t.TempDir(), "n")
	j := proving("echo >>" + n + "; case $(wc -l <" + n + ") in 1|4|5) exit 1; esac")
	j.Verify[0].Rerun, j.Verify[0].Flaky = 1, "accept"
	table := judged(t, j, time.Time{}, nil, map[string]string{"greet": "world\n", "a_test.sh": "true"})
	must.Same(t, []string{"a_test.sh unknown false the check is red on the base without it too, and its output names no tests of it"}, classes(table))
}

func TestReportsUnknownBaseTests(t *testing.T) {
	base, change := map[string]string{"greet": "nobody\n", "x_test.sh": "old"}, map[string]string{"greet": "world\n", "x_test.sh": "new"}
	seen := filepath.Join(t.TempDir(), "seen")
	for name, c := range map[string]struct {
		run, unknown string
		timeout      time.Duration
		until        time.Time
	}{
		"flaky": {"grep -q world greet || exit 0; ! grep -q old x_test.sh || test -e " + seen + " || { touch " + seen + "; false; }", "with them on the change the check is flaky", time.Hour, time.Time{}},
		"late":  {"grep -q world greet || exit 0; ! grep -q old x_test.sh || sleep 1000000", "with them on the change the check did not end in time", time.Second, time.Time{}},
		"over":  {"! grep -q old x_test.sh || ! grep -q world greet", "the time for it was over", time.Hour, time.Now()},
	} {
		t.Run(name, func(t *testing.T) {
			j := proving(c.run)
			j.Verify[0].Rerun, j.Verify[0].Timeout = 1, job.Duration(c.timeout)
			table := judged(t, j, c.until, base, change)
			for name == "late" && table.OldTestsGap() != c.unknown && j.Verify[0].Timeout < job.Duration(5*time.Minute) { // the base had no time either
				j.Verify[0].Timeout *= 2
				table = judged(t, j, c.until, base, change)
			}
			must.Same(t, c.unknown, table.OldTestsGap(), "not known", oldOf(table))
			must.None(t, table.BrokenOldTests(), "not known", oldOf(table))
		})
	}
}
