package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/verify/testresults"
)

func TestWhatGoTestPrints(t *testing.T) {
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
	want := []Failure{
		{Name: "TestA/one", Package: "example.com/m/a", Line: 7},
		{Package: "example.com/m/sub", File: "sub/new_test.go", Line: 9, Load: true},
		{Package: "example.com/m/sub", File: "sub/other_test.go", Line: 9, Load: true},
		{Name: "TestC", Package: "example.com/m/c"},
		{Package: "example.com/m", File: "top_test.go", Line: 3, Load: true},
		{Name: "TestCut"},
	}
	if diff := cmp.Diff(want, readFailures(t, output)); diff != "" {
		t.Error(diff)
	}
}

func readFailures(t *testing.T, output string) []Failure {
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
		tests, _ := file.declares()
		for _, d := range tests {
			if d.line < 1 || d.line > strings.Count(output, "\n")+1 || !file.tells(d.name) {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestOutputsOfFilesThatDoNotLoad(t *testing.T) {
	for output, want := range map[string]bool{
		"E   ImportError: cannot import name 'shout' from 'greet'": true,
		"error[E0425]: cannot find function `shout`":               true,
		"Cannot find module './shout' from 'greet.test.js'":        true,
		"a_test.go:3:2: undefined: Shout":                          true,
		"AssertionError: expected hello":                           false,
		"--- FAIL: TestLoadErrors (0.00s)":                         false,
		"":                                                         false,
	} {
		if got := loads().MatchString(output); got != want {
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
		if got := ranNothing(output); got != want {
			t.Errorf("%q: %t", output, got)
		}
	}
}

func TestTestsThatFilesDeclare(t *testing.T) {
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
		all, known := testFile{path: c.path, text: c.text}.declares()
		var got []string
		for _, d := range all {
			got = append(got, d.name+":"+string(rune('0'+d.line)))
		}
		if strings.Join(got, " ") != c.want || known != c.known {
			t.Errorf("%s: %v, %t", c.path, got, known)
		}
	}
}

func TestWhoseAFailureIs(t *testing.T) {
	file := testFile{path: "pkg/a/x_test.go", text: "func TestOne(t *testing.T) {}"}
	py := testFile{path: "tests/test_a.py", text: "def test_one():"}
	java := testFile{path: "src/test/java/com/example/GreetTest.java", text: "@Test void one() {}"}
	js := testFile{path: "a.test.js", text: "it('says hello', f)"}
	for _, c := range []struct {
		file testFile
		x    Failure
		want bool
	}{
		{file, Failure{Name: "TestOne"}, true},
		{file, Failure{Name: "TestOne/sub", Package: "example.com/m/pkg/a"}, true},
		{file, Failure{Name: "TestOne", Package: "example.com/m/pkg/b"}, false},
		{file, Failure{Name: "TestOneMore"}, false},
		{file, Failure{Name: "x", File: "a/x_test.go"}, true},
		{file, Failure{Name: "TestOne", File: "b/x_test.go"}, false},
		{file, Failure{File: "x_test.go", Package: "m/pkg/b"}, false},
		{py, Failure{Name: "tests/test_a.py::TestA::test_one[1-2]"}, true},
		{py, Failure{Name: "test_two"}, false},
		{js, Failure{Name: "greeting > says hello"}, true},
		{js, Failure{}, false},
		{java, Failure{Name: "com.example.GreetTest.one"}, true},
		{java, Failure{Name: "com.example.GreetTest$Inner.one(int)[2]"}, true},
		{java, Failure{Name: "com.example.OtherTest.one"}, false},
		{java, Failure{Name: "com.example.GreetTest.two"}, false},
		{java, Failure{Name: "com.example.GreetTest."}, false},
		{py, Failure{Name: "tests.test_a.TestA.test_one"}, true},
	} {
		if got := c.file.has(c.x); got != c.want {
			t.Errorf("%s has %+v: %t", c.file.path, c.x, got)
		}
	}
	all := []testFile{{path: "x_test.go"}, {path: "sub/x_test.go"}, {path: "y_test.go"}}
	x := Failure{File: "x_test.go", Load: true}
	if !isOf(all[0], x, all) || isOf(all[1], x, all) || !isOf(all[2], x, all) {
		t.Error("a file that does not compile takes its folder with it, and no other")
	}
}

func TestWhatIsDataOfTests(t *testing.T) {
	for path, want := range map[string]bool{
		"a/testdata/x.go": true, "tests/words.json": true, "tests/conftest.py": true, "spec/fixtures/user.rb": true,
		"a_test.go": false, "tests/run": false, "tests/test_a.py": false,
	} {
		if got := isData(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
