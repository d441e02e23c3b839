package main_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// toolchain is a project of some programs, and what a run does with them in it.
type toolchain struct {
	needs  string            // a command that works where the programs are there; TOOL for the programs' own words
	env    map[string]string // of commands besides
	files  map[string]string
	setup  []string
	agent  []string
	checks []string
	slow   bool // takes so long that it is left to the end-to-end tests
}

// log has what a command prints and how it ends in a file of the change.
func log(command string) string {
	return "{ " + command + "; status=$?; echo \"$status\"; } >>log.txt 2>&1; exit \"$status\""
}

var toolchains = map[string]toolchain{
	"git": {
		needs: "git --version",
		files: map[string]string{"a.txt": "one\ntwo\n", "b/c.txt": "three\n", "b/d.txt": "four\n", ".gitignore": "*.o\n", "run.sh": "#!/bin/sh\necho ran\n"},
		setup: []string{"echo made >made.o", "git status --porcelain --ignored >setup.o"},
		agent: []string{
			log("git status --porcelain --ignored"), "sed -i s/one/ONE/ a.txt; rm b/c.txt; echo new >new.txt; chmod +x run.sh; ln -s a.txt link", log("git status --porcelain --untracked-files=all"),
			log("git diff --stat; git diff"), log("git ls-files --stage --deleted --modified --others --exclude-standard"), log("git diff --quiet"), log("git check-ignore made.o"), log("git grep ONE"),
			log("git add --all"), log("git commit --message=x"), log("git stash"), log("git checkout -- a.txt"), log("git log --format=%s"), log("git show HEAD:b/c.txt"), log("git mv b/d.txt e.txt"), log("git clean --dry-run -d"),
			log("git hash-object --stdin --path=a.txt <a.txt"), log("git apply --check <patch.txt"), log("git init --quiet elsewhere; git -C elsewhere status --porcelain; rm -rf elsewhere"), log("git blame --porcelain a.txt | grep -v time"),
		},
		checks: []string{"git status --porcelain", "test -z \"$(git status --porcelain)\"", "test -x run.sh", "git log --format=%s | grep -q begin", "cat made.o", "git diff --cached --name-only"},
	},
	"go": {
		needs: "go version", env: map[string]string{"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off"},
		files: map[string]string{
			"go.mod": "module example.invalid/m\n\ngo 1.20\n\nrequire example.invalid/lib v0.0.0\n\nreplace example.invalid/lib => ./lib\n", ".gitignore": "/bin/\n",
			"main.go":    "package main\n\nimport \"example.invalid/lib\"\n\nfunc main() { println(lib.Greet()) }\n",
			"lib/go.mod": "module example.invalid/lib\n\ngo 1.20\n", "lib/lib.go": "package lib\n\nfunc Greet() string { return \"hello\" }\n",
			"lib/lib_test.go": "package lib\n\nimport \"testing\"\n\nfunc TestGreet(t *testing.T) {\n\tif Greet() != \"hello world\" {\n\t\tt.Error(Greet())\n\t}\n}\n",
		},
		setup: []string{"go build -o bin/first ."},
		agent: []string{
			log("bin/first"), log("cd lib && go test . >/dev/null"), "sed -i 's/\"hello\"/\"hello  world\"/' lib/lib.go", log("gofmt -l ."), "sed -i 's/hello  world/hello world/' lib/lib.go", log("cd lib && go test . >/dev/null"),
			log("go build -o bin/second . && bin/second"), log("go vet ./..."), log("go list -m all"), log("go mod tidy"), log("go generate ./..."),
		},
		checks: []string{"go build -o bin/checked . && bin/checked", "cd lib && go test .", "go run .", "bin/first", "bin/second"},
	},
	"cargo": {
		needs: "cargo --version", slow: true, env: map[string]string{"CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never"},
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nlib = { path = \"lib\" }\n", "src/main.rs": "fn main() { println!(\"{}\", lib::greet()); }\n", ".gitignore": "target\n",
			"lib/Cargo.toml": "[package]\nname = \"lib\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"lib/src/lib.rs": "pub fn greet() -> &'static str { \"hello\" }\n\n#[test]\nfn greets() { assert_eq!(greet(), \"hello world\"); }\n",
		},
		setup:  []string{"cargo build --quiet --offline --target-dir target && rm -f Cargo.lock"},
		agent:  []string{log("cargo test --quiet --offline -p lib >/dev/null 2>&1"), "sed -i 's/\"hello\"/\"hello world\"/' lib/src/lib.rs", log("cargo test --quiet --offline -p lib >/dev/null 2>&1"), log("cargo run --quiet --offline"), log("cargo metadata --offline --no-deps --format-version 1 >/dev/null 2>&1")},
		checks: []string{"cargo test --offline -p lib", "cargo run --offline", "test -f Cargo.lock"},
	},
	"npm": {
		needs: "npm --version && node --version", slow: true, env: map[string]string{"npm_config_update_notifier": "false", "npm_config_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false"},
		files: map[string]string{
			"package.json": "{\n  \"name\": \"m\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"test\": \"node test.js\"}\n}\n", ".gitignore": "node_modules\n", "test.js": "if (require('greet')() !== 'hello world') process.exit(1)\n",
			"packages/greet/package.json": "{\"name\": \"greet\", \"version\": \"1.0.0\", \"main\": \"index.js\"}\n", "packages/greet/index.js": "module.exports = () => 'hello'\n",
			"packages/other/package.json": "{\"name\": \"other\", \"version\": \"1.0.0\", \"bin\": {\"other\": \"cli.js\"}}\n", "packages/other/cli.js": "#!/usr/bin/env node\nconsole.log('other')\n",
		},
		setup:  []string{"npm install --silent --no-save --no-package-lock ./packages/greet"},
		agent:  []string{log("npm test >/dev/null 2>&1"), "sed -i \"s/'hello'/'hello world'/\" packages/greet/index.js", log("npm test --silent"), log("npm install --silent ./packages/greet ./packages/other"), log("npx --no-install other"), log("npm pack --silent ./packages/other"), log("npm ls --silent")},
		checks: []string{"npm test --silent", "test -d node_modules/greet", "npx --no-install other", "npm ci --silent && npx --no-install other"},
	},
	"pip": {
		needs: "TOOL -m venv .try && .try/bin/pip --version", slow: true, env: map[string]string{"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"},
		files: map[string]string{
			"greeting-1.0-py3-none-any.whl": wheel("greeting", "1.0", "def hello(): return 'hello'\n"), "other-1.0-py3-none-any.whl": wheel("other", "1.0", "def hello(): return 'other'\n"), ".gitignore": ".venv\n__pycache__\n",
			"test_it.py": "import unittest, greeting, words\n\nclass It(unittest.TestCase):\n    def test(self): self.assertEqual(greeting.hello() + words.more, 'hello world')\n", "words.py": "more = ''\n",
		},
		setup: []string{"TOOL -m venv .venv && .venv/bin/pip install --quiet ./greeting-1.0-py3-none-any.whl"},
		agent: []string{
			log(".venv/bin/python -m unittest -q 2>/dev/null"), "echo \"more = ' world'\" >words.py", log(".venv/bin/python -m unittest -q 2>/dev/null"), log(".venv/bin/pip install --quiet ./other-1.0-py3-none-any.whl"), log(".venv/bin/pip install --quiet no-such-package 2>/dev/null"),
			log(".venv/bin/pip freeze --all | sed 's/ @ .*//' | grep -v '^pip=\\|^setuptools='"), log(".venv/bin/python -c 'import other; print(other.hello())'"), log("TOOL -m compileall -q words.py"), ".venv/bin/pip uninstall --quiet --yes greeting", log(".venv/bin/python -c 'import greeting' 2>/dev/null"),
		},
		checks: []string{".venv/bin/python -m unittest", ".venv/bin/python -c 'import other'", ".venv/bin/pip install ./other-1.0-py3-none-any.whl && .venv/bin/python -c 'import other'", "TOOL -m venv --without-pip .venv2 && .venv2/bin/python -c 'import sys'"},
	},
	"maven": { // whose plugins are no part of it, so that javac compiles
		needs: "mvn --version && javac -version", slow: true,
		files: map[string]string{
			"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging><modules><module>child</module></modules></project>\n", ".gitignore": "target\n.m2\n",
			"child/pom.xml": "<project><modelVersion>4.0.0</modelVersion><parent><groupId>g</groupId><artifactId>parent</artifactId><version>1</version></parent><artifactId>child</artifactId><packaging>pom</packaging></project>\n",
			"src/Main.java": "public class Main { public static void main(String[] a) { if (!Words.TEXT.equals(\"hello world\")) System.exit(3); } }\n", "src/Words.java": "class Words { static final String TEXT = \"hello\"; }\n",
		},
		setup:  []string{mvn + " validate", "javac -d target src/*.java"},
		agent:  []string{log("java -cp target Main"), "sed -i 's/\"hello\"/\"hello world\"/' src/Words.java", log("javac -d target src/*.java && java -cp target Main"), log(mvn + " validate >/dev/null"), "echo '<project/>' >child/pom.xml", log(mvn + " validate >/dev/null"), "git show HEAD:child/pom.xml >child/pom.xml", log("jar --create --file target/m.jar -C target Main.class -C target Words.class && java -cp target/m.jar Main")},
		checks: []string{mvn + " validate", "java -cp target Main", "javac -d target src/*.java && java -cp target Main"},
	},
}

const mvn = "mvn --batch-mode --offline --quiet -Dmaven.repo.local=.m2"

// wheel is a package of one module as pip installs it.
func wheel(name, version, text string) string {
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	info := name + "-" + version + ".dist-info/"
	files := map[string]string{
		name + ".py": text, info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n", info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD": name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(path)
		if err == nil {
			_, err = f.Write([]byte(files[path]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return raw.String()
}

// TestToolchainsMatchInBothBackings does with programs what people do with them, once
// in an overlay and once in a private tree: change, exit statuses and checks are the same.
func TestToolchainsMatchInBothBackings(t *testing.T) {
	t.Parallel()
	if !probed().Overlay {
		t.Skip("needs overlays")
	}
	for name, chain := range toolchains {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if chain.slow && !everything() {
				t.Skip("takes longer: make e2e")
			}
			w := newWorkshop(t, "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z") // commits are the same, too
			chain.find(t, &w)
			before := chain.project(&w, "project")
			overlay, private := chain.run(&w, confine.InOverlay), chain.run(&w, confine.PrivateTree)
			must.Same(t, private, overlay, "what came of it (-private +overlay)")
			t.Logf("%s/%s, commands ended as %q, checks as %q", overlay.Outcome, overlay.Reason, overlay.Ends, overlay.Checks)
			if !slices.Contains(overlay.Ends, "0") || len(overlay.Ends) != len(chain.setup)+len(chain.agent) || len(overlay.Checks) != len(chain.checks) || overlay.Tree == before {
				t.Errorf("too little came of it: %+v", overlay)
			}
		})
	}
}

// find looks for the programs and what they need of the user's folder.
func (c *toolchain) find(t *testing.T, w *workshop) {
	t.Helper()
	c.env = maps.Clone(c.env)
	home, _ := os.UserHomeDir()
	for name, folder := range map[string]string{"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"} {
		if path := filepath.Join(home, folder); os.Getenv(name) == "" && exists(path) {
			w.env = append(w.env, name+"="+path)
		} else if value := os.Getenv(name); value != "" {
			w.env = append(w.env, name+"="+value)
		}
	}
	if cache, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil { // with what the library is made of
		w.env = append(w.env, "GOCACHE="+strings.TrimSpace(string(cache)))
	}
	if !strings.Contains(c.needs, "TOOL") {
		if out, err := c.try(w, c.needs); err != nil {
			t.Skipf("%s does not work here: %v: %s", c.needs, err, out)
		}
		return
	}
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		use := strings.NewReplacer("TOOL", python)
		if _, err := c.try(w, use.Replace(c.needs)); err != nil {
			continue
		}
		for _, list := range []*[]string{&c.setup, &c.agent, &c.checks} {
			*list = slices.Clone(*list)
			for i := range *list {
				(*list)[i] = use.Replace((*list)[i])
			}
		}
		return
	}
	t.Skip("there is no python3 with venv and pip here")
}

func (c *toolchain) try(w *workshop, command string) ([]byte, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = w.t.TempDir(), w.env
	return cmd.CombinedOutput()
}

// project makes the repository of a run, always the same one. It gives its tree.
func (c *toolchain) project(w *workshop, dir string) string {
	w.t.Helper()
	dir = filepath.Join(w.dir, dir)
	for name, text := range c.files {
		w.write(filepath.Join(dir, name), text)
	}
	w.write(filepath.Join(dir, "patch.txt"), "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n ONE\n-two\n+TWO\n")
	w.repository(dir)
	return w.git(dir, "rev-parse", "HEAD^{tree}")
}

// cameOf is what came of a run.
type cameOf struct {
	Outcome, Reason, WorkTree string
	Tree                      string
	Files                     string
	Ends                      []string // of setup commands and the agent's, in turn
	Checks                    []string
}

// run does it all in one way, in a folder of the same name each time.
func (c *toolchain) run(w *workshop, way string) (came cameOf) {
	w.t.Helper()
	dir, out := filepath.Join(w.dir, "project"), filepath.Join(w.dir, "out-"+way)
	must.Do(w.t, os.RemoveAll(dir))
	c.project(w, "project")
	if way == confine.PrivateTree {
		w.keepOverlaysOff(dir)
	}
	var setup, verify, turns []any
	for _, command := range c.setup {
		setup = append(setup, map[string]string{"run": command})
	}
	for _, command := range c.checks {
		verify = append(verify, map[string]string{"run": command})
	}
	for i, command := range c.agent {
		turns = append(turns, map[string]any{"output": []any{map[string]any{"id": fmt.Sprintf("call_%d", i), "call": "exec_command", "arguments": map[string]any{"cmd": command, "yield_time_ms": 60000}}}})
	}
	end := map[string]any{"output": []any{map[string]string{"say": "Done."}}}
	files := map[string]any{
		"job.yml": map[string]any{
			"version": 1, "name": "same", "task": map[string]string{"prompt": "Do the same."}, "setup": setup, "verify": verify, "verify_attempts": 0, "model": map[string]any{"context_window": 1_000_000_000},
			"policy": map[string]any{
				"env": map[string]any{"set": c.env, "pass": []string{"GOCACHE", "RUSTUP_HOME", "PYENV_ROOT"}}, "writable": c.caches(w),
				"change": map[string]string{"symlinks": "allow", "executables": "allow", "lockfiles": "allow", "symlinks_out": "allow"},
			},
		},
		"session.yml": map[string]any{"version": 1, "turns": append(turns, end)},
	}
	for name, file := range files {
		w.writeJSON(name, file)
	}
	printed, _ := w.agent("run", "job.yml", "--repo", dir, "--replay", "session.yml", "--out", out, "--publish", "local", "--quiet")
	came.read(w, out, printed)
	must.Same(w.t, way, came.WorkTree, "commands worked in", printed)
	came.WorkTree = ""
	came.Tree = w.git(dir, "rev-parse", "HEAD^{tree}")
	came.Files = w.git(dir, "show", "--format=", "--no-color", "HEAD")
	must.Same(w.t, "", w.git(dir, "status", "--porcelain"), "the checkout has, in the way", way)
	return came
}

// caches are what commands write to beside their own folders.
func (c *toolchain) caches(w *workshop) []string {
	for _, variable := range w.env {
		if path, is := strings.CutPrefix(variable, "GOCACHE="); is && strings.HasPrefix(c.needs, "go ") {
			return []string{path}
		}
	}
	return nil
}

func (came *cameOf) read(w *workshop, out, printed string) {
	w.t.Helper()
	var result struct {
		Outcome, Reason string
		Sandbox         struct {
			WorkTree string `json:"work_tree"`
		}
	}
	w.t.Log(printed)
	readJSON(w.t, filepath.Join(out, "result.json"), &result)
	came.Outcome, came.Reason, came.WorkTree = result.Outcome, result.Reason, result.Sandbox.WorkTree
	for _, event := range readEvents(w.t, filepath.Join(out, "transcript.jsonl")) {
		switch event.Type {
		case transcript.TypeSetup:
			came.Ends = append(came.Ends, fmt.Sprint(dataOf[transcript.Setup](w.t, event).ExitCode))
		case transcript.TypeToolFinished:
			came.Ends = append(came.Ends, fmt.Sprint(dataOf[transcript.ToolFinished](w.t, event).Detail["exit_code"]))
		case transcript.TypeVerify:
			came.Checks = nil
			for _, row := range dataOf[transcript.Verify](w.t, event).Rows {
				came.Checks = append(came.Checks, fmt.Sprintf("%s: %s, %s", row.Name, row.Before, row.After))
			}
		}
	}
}
