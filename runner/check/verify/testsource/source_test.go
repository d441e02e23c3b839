package testsource

import (
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

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
	want := []Failure{
		{OutputName: "example.com/m/a.TestA/one", Name: "TestA/one", Package: "example.com/m/a", Line: 7},
		{OutputName: "example.com/m/sub [build failed]", Package: "example.com/m/sub", File: "sub/new_test.go", Line: 9, LoadError: true},
		{OutputName: "example.com/m/sub [build failed]", Package: "example.com/m/sub", File: "sub/other_test.go", Line: 9, LoadError: true},
		{OutputName: "example.com/m/c.TestC", Name: "TestC", Package: "example.com/m/c"},
		{OutputName: "example.com/m [build failed]", Package: "example.com/m", File: "top_test.go", Line: 3, LoadError: true},
		{OutputName: "TestCut", Name: "TestCut"},
	}
	must.Same(t, want, readFailures(t, output))
}

func readFailures(t *testing.T, output string) []Failure {
	t.Helper()
	told := must.Get(testresults.Read(t.Context(), strings.NewReader(output), nil))(t)
	return Failures(told)
}

func FuzzFailures(f *testing.F) {
	f.Add("--- FAIL: TestA (0.00s)\nFAIL\tp\t0.1s\n./x_test.go:99999999999999999999:1: y\n")
	f.Fuzz(func(t *testing.T, output string) {
		for _, x := range readFailures(t, output) {
			if x.Name == "" && x.File == "" || x.Line < 0 {
				t.Errorf("%+v", x)
			}
		}
		file := NewFile("a/x_test.go", output)
		for _, d := range file.Tests {
			if d.Line < 1 || d.Line > strings.Count(output, "\n")+1 || len(d.Name) < 100 && !declaresIt(file, d.Name) {
				t.Errorf("%+v", d)
			}
		}
	})
}

func declaresIt(f File, name string) bool {
	_, is := f.Find(name)
	return is
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
		file := NewFile(c.path, c.text)
		var got []string
		for _, d := range file.Tests {
			got = append(got, d.Name+":"+string(rune('0'+d.Line)))
		}
		must.Same(t, c.want, strings.Join(got, " "), c.path, got)
		must.Same(t, c.known, file.Known, c.path, got)
	}
}

func TestLocatesFailures(t *testing.T) {
	repo := gittest.New(t)
	for name, content := range map[string]string{"go.mod": "module example.com/m\n", "other/tests/test_b.py": "", "sub/go.mod": "module \"example.com/sub\"\n"} {
		repo.Write(name, content)
	}
	repo.Commit("base")
	checkout := must.Get(gitops.Open(t.Context(), gitops.Options{Dir: repo.Dir, Git: gittest.Program(t), State: t.TempDir()}))(t)
	t.Cleanup(func() { _ = checkout.Close() })
	file := NewFile("pkg/a/x_test.go", "func TestOne(t *testing.T) {}")
	py := NewFile("tests/test_a.py", "def test_one():")
	other := NewFile("tests/test_b.py", "def test_two():")
	java := NewFile("src/test/java/com/example/GreetTest.java", "@Test void one() {}")
	js := NewFile("a.test.js", "it('says hello', f)\nit('says', f)")
	sub := NewFile("sub/a/z_test.go", "func TestOne(t *testing.T) {}\n// func TestTwo(t) is no test\n")
	sh := NewFile("tests/run", "adds() { :; }\ntakes more { :; }\n")
	all := []File{file, py, other, java, js, sub, sh, {Path: "pkg/a/y_test.go"}, {Path: "one/tests/test_c.py"}, {Path: "two/tests/test_c.py"}}
	for _, c := range []struct {
		x    Failure
		want string
	}{
		{Failure{Name: "TestOne"}, ""}, // of which of the two
		{Failure{Name: "TestOne/sub", Package: "example.com/m/pkg/a"}, file.Path},
		{Failure{Name: "TestOne", Package: "example.com/m/pkg/b"}, ""},
		{Failure{Name: "TestOne", Package: "example.com/sub/a"}, sub.Path},
		{Failure{Name: "TestOne", Package: "a"}, ""},
		{Failure{Name: "TestTwo"}, ""},
		{Failure{Name: "TestOneMore"}, ""},
		{Failure{Name: "x", File: "a/x_test.go"}, file.Path},
		{Failure{Name: "TestOne", File: "b/x_test.go"}, ""},
		{Failure{File: "x_test.go", Package: "example.com/m/pkg/b"}, ""},
		{Failure{File: "x_test.go", Package: "example.com/m/pkg/a", LoadError: true}, file.Path + " pkg/a/y_test.go"},
		{Failure{Name: "tests/test_a.py::TestA::test_one[1-2]"}, py.Path},
		{Failure{Name: "x", File: "/work/tests/test_a.py"}, py.Path},
		{Failure{Name: "x", File: "sub/tests/test_a.py"}, ""},
		{Failure{Name: "x", File: "test_a.py"}, py.Path},
		{Failure{Name: "x", File: "test_b.py"}, ""}, // other/tests has one too
		{Failure{Name: "x", File: "tests/test_c.py"}, ""},
		{Failure{Name: "test_two"}, other.Path},
		{Failure{Name: "test_three"}, ""},
		{Failure{Name: "greeting > says hello"}, js.Path},
		{Failure{Name: "says"}, js.Path},
		{Failure{Name: "hello"}, ""},
		{Failure{}, ""},
		{Failure{Name: "com.example.GreetTest.one"}, java.Path},
		{Failure{Name: "com.example.GreetTest$Inner.one(int)[2]"}, java.Path},
		{Failure{Name: "com.example.OtherTest.one"}, ""},
		{Failure{Name: "com.example.GreetTest.two"}, ""},
		{Failure{Name: "com.example.GreetTest."}, ""},
		{Failure{Name: "tests.test_a.TestA.test_one"}, py.Path},
		{Failure{Name: "adds"}, sh.Path},
		{Failure{Name: "takes"}, ""},
	} {
		located, got := []Failure{c.x}, ""
		must.Do(t, NewLocator(checkout, all).Locate(t.Context(), located))
		for _, f := range all {
			if located[0].BelongsTo(f) {
				got += " " + f.Path
			}
		}
		must.Same(t, c.want, strings.TrimSpace(got), c.x, got)
	}
}

func TestFindsOwnTestNames(t *testing.T) {
	for name, want := range map[string]string{
		"example.com/m/p.TestA":             "TestA",
		"example.com/m/p.TestA/x.TestB/c d": "TestA",
		"TestA/two_words":                   "TestA",
		"tests/test_a.py::TestC::test_x[a]": "test_x",
		"a.test.js › greet › says hello":    "says hello",
		"group > inner":                     "inner",
		"src/a.js: strict Missing it":       "src/a.js: strict Missing it",
		"p [build failed]":                  "p",
		"com.example.Calc.adds":             "com.example.Calc.adds",
		"":                                  "",
	} {
		must.Same(t, want, OwnName(name), name)
	}
}
