package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestReadsGoTestOutput(t *testing.T) {
	output := `# example.com/m/sub [example.com/m/sub.test]
sub/new_test.go:9:6: undefined: New
sub/new_test.go:10:6: undefined: New
# example.com/m/sub_test [example.com/m/sub.test]
sub/other_test.go:2:6: undefined: Other
# example.com/m
# [example.com/m]
vet: ./top_test.go:3:1: expected declaration
--- FAIL: TestA (0.00s)
    --- FAIL: TestA/one (0.00s)
        a_test.go:7: no
FAIL
FAIL	example.com/m/a	0.004s
ok  	example.com/m/b	0.1s
FAIL	example.com/m/sub [build failed]
--- FAIL: TestC (0.00s)
panic: runtime error
FAIL	example.com/m/c	0.004s
FAIL	example.com/m [build failed]
--- FAIL: TestCut (0.00s)
`
	want := []failure{
		{OutputName: "example.com/m/a.TestA/one", Name: "TestA/one", Package: "example.com/m/a", Line: 7},
		{OutputName: "example.com/m/sub [build failed]", Package: "example.com/m/sub", File: "sub/new_test.go", Line: 9, LoadError: true},
		{OutputName: "example.com/m/sub [build failed]", Package: "example.com/m/sub", File: "sub/other_test.go", Line: 9, LoadError: true},
		{OutputName: "example.com/m/c.TestC", Name: "TestC", Package: "example.com/m/c"},
		{OutputName: "example.com/m [build failed]", Package: "example.com/m", File: "top_test.go", Line: 3, LoadError: true},
		{OutputName: "TestCut", Name: "TestCut"},
	}
	if diff := cmp.Diff(want, readFailures(t, output)); diff != "" {
		t.Error(diff)
	}
}

func readFailures(t *testing.T, output string) []failure {
	t.Helper()
	told, err := testresults.Read(t.Context(), strings.NewReader(output), nil)
	if err != nil {
		t.Fatal(err)
	}
	return failuresOf(told)
}

func FuzzFailures(f *testing.F) {
	f.Add("--- FAIL: TestA (0.00s)\nFAIL\tp\t0.1s\n./x_test.go:99999999999999999999:1: y\n")
	f.Fuzz(func(t *testing.T, output string) {
		for _, x := range readFailures(t, output) {
			if x.Name == "" && x.File == "" || x.Line < 0 {
				t.Errorf("%+v", x)
			}
		}
		file := testFile{path: "a/x_test.go", text: output}
		tests, _ := file.declaredTests()
		for _, d := range tests {
			if d.line < 1 || d.line > strings.Count(output, "\n")+1 || len(d.name) < 100 && !declaresIt(file, d.name) {
				t.Errorf("%+v", d)
			}
		}
	})
}

func declaresIt(f testFile, name string) bool {
	_, is := f.finder().find(name)
	return is
}

func TestRecognisesLoadErrors(t *testing.T) {
	for output, want := range map[string]bool{
		"E   ImportError: cannot import name 'shout' from 'greet'": true,
		"error[E0425]: cannot find function `shout`":               true,
		"Cannot find module './shout' from 'greet.test.js'":        true,
		"a_test.go:3:2: undefined: Shout":                          true,
		"AssertionError: expected hello":                           false,
		"--- FAIL: TestLoadErrors (0.00s)":                         false,
		"":                                                         false,
	} {
		if got := loadErrorPatterns().MatchString(output); got != want {
			t.Errorf("%q: %t", output, got)
		}
	}
	for output, want := range map[string]bool{
		"collected 0 items\n":                              true,
		"ok  \tp\t0.1s [no tests to run]\n":                true,
		"ok  \tp\t0.1s [no tests to run]\nok  \tq\t0.1s\n": false,
		"No tests found, exiting with code 1\n":            true,
		"1..0 # skipped\n":                                 true,
		"all is well\n":                                    false,
	} {
		if got := ranNoTests(output); got != want {
			t.Errorf("%q: %t", output, got)
		}
	}
}

func TestListsDeclaredTests(t *testing.T) {
	for _, c := range []struct {
		path, text, want string
		known            bool
	}{
		{"a_test.go", "package a\n\nfunc TestOne(t *testing.T) {}\nfunc help() {}\nfunc FuzzTwo(f *testing.F) {}\n", "TestOne:3 FuzzTwo:5", true},
		{"test_a.py", "class TestA:\n    def test_one(self):\n        pass\nasync def test_two():\n", "test_one:2 test_two:4", true},
		{"a.test.ts", "describe('a', () => {\n  it('says one', f)\n  test.only(\"two\", f)\n  test(`three`, f)\n", "says one:2 two:3 three:4", true},
		{"a_test.rb", "def test_one\nend\nit 'does two' do\n", "test_one:1 does two:3", true},
		{"tests/a.rs", "#[test]\nfn one() {}\n#[tokio::test]\nasync fn two() {}\n", "one:2 two:4", true},
		{"ATest.java", "@Test\npublic void one() {}\n@Test\nvoid two() {}", "one:2 two:4", true},
		{"a.bats", "@test \"one is\" {\n", "one is:1", true},
		{"a.zig", "test \"x\" {}", "", false},
	} {
		all, known := testFile{path: c.path, text: c.text}.declaredTests()
		var got []string
		for _, d := range all {
			got = append(got, d.name+":"+string(rune('0'+d.line)))
		}
		if strings.Join(got, " ") != c.want || known != c.known {
			t.Errorf("%s: %v, %t", c.path, got, known)
		}
	}
}

func TestLocatesFailures(t *testing.T) {
	checks := checksOn(t, job.Job{}, map[string]string{"go.mod": "module example.com/m\n", "other/tests/test_b.py": "", "sub/go.mod": "module \"example.com/sub\"\n"})
	file := testFile{path: "pkg/a/x_test.go", text: "func TestOne(t *testing.T) {}"}
	py := testFile{path: "tests/test_a.py", text: "def test_one():"}
	other := testFile{path: "tests/test_b.py", text: "def test_two():"}
	java := testFile{path: "src/test/java/com/example/GreetTest.java", text: "@Test void one() {}"}
	js := testFile{path: "a.test.js", text: "it('says hello', f)\nit('says', f)"}
	sub := testFile{path: "sub/a/z_test.go", text: "func TestOne(t *testing.T) {}\n// func TestTwo(t) is no test\n"}
	sh := testFile{path: "tests/run", text: "adds() { :; }\ntakes more { :; }\n"}
	all := []testFile{file, py, other, java, js, sub, sh, {path: "pkg/a/y_test.go"}, {path: "one/tests/test_c.py"}, {path: "two/tests/test_c.py"}}
	for _, c := range []struct {
		x    failure
		want string
	}{
		{failure{Name: "TestOne"}, ""}, // of which of the two
		{failure{Name: "TestOne/sub", Package: "example.com/m/pkg/a"}, file.path},
		{failure{Name: "TestOne", Package: "example.com/m/pkg/b"}, ""},
		{failure{Name: "TestOne", Package: "example.com/sub/a"}, sub.path},
		{failure{Name: "TestOne", Package: "a"}, ""},
		{failure{Name: "TestTwo"}, ""},
		{failure{Name: "TestOneMore"}, ""},
		{failure{Name: "x", File: "a/x_test.go"}, file.path},
		{failure{Name: "TestOne", File: "b/x_test.go"}, ""},
		{failure{File: "x_test.go", Package: "example.com/m/pkg/b"}, ""},
		{failure{File: "x_test.go", Package: "example.com/m/pkg/a", LoadError: true}, file.path + " pkg/a/y_test.go"},
		{failure{Name: "tests/test_a.py::TestA::test_one[1-2]"}, py.path},
		{failure{Name: "x", File: "/work/tests/test_a.py"}, py.path},
		{failure{Name: "x", File: "sub/tests/test_a.py"}, ""},
		{failure{Name: "x", File: "test_a.py"}, py.path},
		{failure{Name: "x", File: "test_b.py"}, ""}, // other/tests has one too
		{failure{Name: "x", File: "tests/test_c.py"}, ""},
		{failure{Name: "test_two"}, other.path},
		{failure{Name: "test_three"}, ""},
		{failure{Name: "greeting > says hello"}, js.path},
		{failure{Name: "says"}, js.path},
		{failure{Name: "hello"}, ""},
		{failure{}, ""},
		{failure{Name: "com.example.GreetTest.one"}, java.path},
		{failure{Name: "com.example.GreetTest$Inner.one(int)[2]"}, java.path},
		{failure{Name: "com.example.OtherTest.one"}, ""},
		{failure{Name: "com.example.GreetTest.two"}, ""},
		{failure{Name: "com.example.GreetTest."}, ""},
		{failure{Name: "tests.test_a.TestA.test_one"}, py.path},
		{failure{Name: "adds"}, sh.path},
		{failure{Name: "takes"}, ""},
	} {
		names, got := newFailureLocator(checks.Workspace.Checkout(), all), ""
		for _, f := range all {
			is, _, err := names.belongsTo(t.Context(), c.x, f)
			if err != nil {
				t.Fatal(err)
			}
			if is {
				got += " " + f.path
			}
		}
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%+v is of %q, not of %q", c.x, got, c.want)
		}
	}
}

func TestRecognisesTestData(t *testing.T) {
	for path, want := range map[string]bool{
		"a/testdata/x.go": true, "tests/words.json": true, "tests/conftest.py": true, "spec/fixtures/user.rb": true,
		"a_test.go": false, "tests/run": false, "tests/test_a.py": false,
	} {
		if got, err := (Checks{Job: &job.Job{VerifyTests: job.TestPatterns()}}).isData(path); got != want || err != nil {
			t.Errorf("%s: %t, %v", path, got, err)
		}
	}
	own := Checks{Job: &job.Job{VerifyTests: []string{"testdata/*.txtar", "*.sql", "tests/**"}}}
	for path, want := range map[string]bool{"testdata/a.txtar": false, "a/b.sql": false, "tests/words.json": true} {
		if got, err := own.isData(path); got != want || err != nil {
			t.Errorf("%s: %t, %v", path, got, err)
		}
	}
}
