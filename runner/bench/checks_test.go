package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// checked is a project with a fix and its test.
type checked struct {
	name  string
	check string
	begin string // fills what a machine has before; empty for nothing
	base  map[string]string
	fix   map[string]string
	tests map[string]string // of the fix, which the base has otherwise
}

// BenchmarkChecks compares whole runs with the check by hand. The first execution by hand has the caches of
// the machine, as in a run. Each further one has what the first left. The limit is 1.3 times their sum, and
// a second.
func BenchmarkChecks(b *testing.B) {
	for _, project := range []checked{goProject("in a package that everything imports", "text"), goProject("in a package that nothing imports", "p011"), pythonProject(), nodeProject(), crate()} {
		b.Run(project.name, func(b *testing.B) {
			program := strings.Fields(project.check)[0]
			if _, err := exec.LookPath(program); err != nil {
				b.Skipf("there is no %s here", program)
			}
			for b.Loop() {
				project.measure(b)
			}
		})
	}
}

func (p checked) measure(b *testing.B) {
	b.Helper()
	at := b.TempDir()
	p.prepare(b, at)
	first, warm := p.byHand(b, at)
	session := must.Get(json.Marshal(map[string]any{"version": 1, "turns": []any{
		map[string]any{"output": []any{map[string]any{"call": "exec_command", "arguments": map[string]any{"cmd": p.patch(b), "yield_time_ms": 30_000}}}},
		map[string]any{"output": []any{map[string]string{"say": "Done."}}},
	}}))(b)
	job := must.Get(json.Marshal(map[string]any{
		"version": 1, "name": "bench", "task": map[string]string{"prompt": "Measure."}, "verify": []any{map[string]any{"name": "check", "run": p.check, "proves": true}},
	}))(b)
	writeAll(b, at, map[string]string{"job.yml": string(job)})
	out := filepath.Join(at, "out")
	seen := program{
		dir: filepath.Join(at, "project"), session: string(session), job: filepath.Join(at, "job.yml"), out: out,
		env: p.env(filepath.Join(at, "home")), args: []string{"--publish", "none", "--no-baseline-cache"},
	}.run(b)
	executions := must.Get(filepath.Glob(filepath.Join(out, "outputs", "*-check.log")))(b)
	const most = 5
	if len(executions) != most {
		b.Fatalf("the check ran %d times: %q", len(executions), executions)
	}
	for _, row := range []struct {
		figure              string
		first, warm, passed time.Duration
	}{
		{"a run with a fix and its test, " + p.name, first.wall, warm.wall, seen.total()},
		{"  processor time", first.cpu, warm.cpu, seen.cpu()},
	} {
		price := row.first + time.Duration(len(executions)-1)*row.warm
		results.time(fmt.Sprintf("%s: %d executions of the check (by hand %s, then %s)", row.figure, len(executions), duration(row.first), duration(row.warm)), row.passed, price*13/10+time.Second)
	}
}

// prepare makes the repository, and two home folders with the same caches: for the check by hand and for
// the run.
func (p checked) prepare(b *testing.B, at string) {
	b.Helper()
	project := filepath.Join(at, "project")
	writeAll(b, project, p.base)
	git(b, project, "-c", "init.defaultBranch=main", "init", "--quiet")
	git(b, project, "add", "--all")
	git(b, project, "commit", "--quiet", "--message", "base")
	home := filepath.Join(at, "home")
	writeAll(b, home, map[string]string{"begin/.keep": ""})
	if p.begin != "" {
		p.command(b, p.begin, filepath.Join(home, "begin"), home)
	}
	p.command(b, "cp -a home hand-home && cp -a project hand", at, home)
}

// byHand is how long the check takes in a folder: at first, and after the fix.
func (p checked) byHand(b *testing.B, at string) (first, warm spent) {
	b.Helper()
	dir, home := filepath.Join(at, "hand"), filepath.Join(at, "hand-home")
	first = p.command(b, p.check, dir, home)
	p.command(b, p.patch(b), dir, home)
	return first, p.command(b, p.check, dir, home)
}

// patch is a command that makes the fix and its test.
func (p checked) patch(b *testing.B) string {
	b.Helper()
	all := maps.Clone(p.fix)
	maps.Copy(all, p.tests)
	var script strings.Builder
	for name, text := range all {
		fmt.Fprintf(&script, "cat >%s <<'END'\n%sEND\n", name, text)
	}
	return script.String()
}

// spent is what a command took, of the clock and of the processor.
type spent struct{ wall, cpu time.Duration }

func (p checked) command(b *testing.B, script, dir, home string) spent {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, p.env(home)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", script, err, out)
	}
	return spent{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// env has programs find what they need of the user's folder, and their caches in another.
func (p checked) env(home string) []string {
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local"}
	real, err := os.UserHomeDir()
	if err != nil {
		return env
	}
	for name, folder := range map[string]string{"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"} {
		if path := filepath.Join(real, folder); isThere(path) {
			env = append(env, name+"="+path)
		}
	}
	return env
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func writeAll(b *testing.B, dir string, all map[string]string) {
	b.Helper()
	for name, text := range all {
		path := filepath.Join(dir, name)
		must.Write(b, path, text)
	}
}

// goProject has 13 packages with tests, which import the package text; the fix is in one package.
func goProject(where, fixed string) checked {
	const of = "package %[1]s\n\nimport (\n\t\"net/http\"\n\t\"testing\"\n)\n\nfunc Test(t *testing.T) {\n\tif Say(\"\") != \"\" || http.StatusOK != 200 {\n\t\tt.Fatal()\n\t}\n}\n"
	const fixing = "\nfunc TestFixed(t *testing.T) {\n\tif Say(\"a\") != \"A\" {\n\t\tt.Fatal()\n\t}\n}\n"
	say := func(name, body string) string {
		if name == "text" {
			return fmt.Sprintf("package text\n\nimport \"strings\"\n\nfunc Upper(s string) string { return strings.ToUpper(s) }\n\nfunc Say(s string) string { return %s }\n", strings.ReplaceAll(body, "text.", ""))
		}
		return fmt.Sprintf("package %s\n\nimport \"example.com/site/text\"\n\nfunc Say(s string) string { return %s }\n\nvar Used = text.Upper\n", name, body)
	}
	base := map[string]string{"go.mod": "module example.com/site\n\ngo 1.21\n"}
	names := []string{"text"}
	for i := range 12 {
		names = append(names, fmt.Sprintf("p%03d", i))
	}
	for _, name := range names {
		base[name+"/"+name+".go"], base[name+"/"+name+"_test.go"] = say(name, "s"), fmt.Sprintf(of, name)
	}
	return checked{
		name: "Go, a change " + where, check: "go test ./...", base: base,
		begin: "printf 'module m\\n\\ngo 1.21\\n' >go.mod; printf 'package m\\n\\nimport (\\n\\t\"net/http\"\\n\\t\"testing\"\\n)\\n\\nfunc Test(t *testing.T) { _ = http.StatusOK }\\n' >m_test.go; go test ./...",
		fix:   map[string]string{fixed + "/" + fixed + ".go": say(fixed, "text.Upper(s)")},
		tests: map[string]string{fixed + "/" + fixed + "_test.go": fmt.Sprintf(of, fixed) + fixing},
	}
}

func pythonProject() checked {
	const test = "import unittest\n\nimport words\n\n\nclass Words(unittest.TestCase):\n    def test_empty(self):\n        self.assertEqual(words.say(''), '')\n"
	return checked{
		name: "Python, unittest", check: "python3 -m unittest -v",
		base:  map[string]string{".gitignore": "__pycache__/\n", "words.py": "def say(s):\n    return s\n", "test_words.py": test},
		fix:   map[string]string{"words.py": "def say(s):\n    return s.upper()\n"},
		tests: map[string]string{"test_words.py": test + "\n    def test_fixed(self):\n        self.assertEqual(words.say('a'), 'A')\n"},
	}
}

func nodeProject() checked {
	const test = "const { test } = require('node:test');\nconst assert = require('node:assert');\nconst { say } = require('./words.js');\n\ntest('empty', () => assert.strictEqual(say(''), ''));\n"
	return checked{
		name: "JavaScript, node --test", check: "node --test",
		base:  map[string]string{"words.js": "exports.say = (s) => s;\n", "words.test.js": test},
		fix:   map[string]string{"words.js": "exports.say = (s) => s.toUpperCase();\n"},
		tests: map[string]string{"words.test.js": test + "test('fixed', () => assert.strictEqual(say('a'), 'A'));\n"},
	}
}

func crate() checked {
	const test = "#[test]\nfn empty() {\n    assert_eq!(words::say(\"\"), \"\");\n}\n"
	base := map[string]string{
		".gitignore": "/target\n", "Cargo.toml": "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"Cargo.lock": "version = 3\n\n[[package]]\nname = \"words\"\nversion = \"0.1.0\"\n", "src/lib.rs": "pub fn say(s: &str) -> String {\n    s.to_string()\n}\n", "tests/words.rs": test,
	}
	return checked{
		name: "Rust, cargo test", check: "cargo test --locked --offline", base: base,
		fix:   map[string]string{"src/lib.rs": "pub fn say(s: &str) -> String {\n    s.to_uppercase()\n}\n"},
		tests: map[string]string{"tests/words.rs": test + "\n#[test]\nfn fixed() {\n    assert_eq!(words::say(\"a\"), \"A\");\n}\n"},
	}
}
