package main_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// instance is a bug of a project, with what agents make of it.
type instance struct {
	needs  string // a command that works where the instance can run
	base   func(w *workshop) tree
	fix    func(w *workshop) tree // nil where files are in fixed
	fixed  tree                   // what the right fix alters
	tests  tree                   // tests of the fix
	wrong  tree                   // a fix that does not fix
	idle   tree                   // a test that passes without the fix
	check  string
	must   string            // empty for pass
	expect map[string]string // verdicts by arm
}

// tree is files by their paths.
type tree map[string]string

// arms are what an agent may come with. Whatever passes by an accident of the base is caught by one.
var arms = []string{"right fix", "tests alone", "trivial test", "nothing", "wrong fix"}

func (i instance) arm(name string) tree {
	all := tree{}
	for _, part := range map[string][]tree{
		"right fix": {i.fixed, i.tests}, "tests alone": {i.tests}, "trivial test": {i.fixed, i.idle}, "wrong fix": {i.wrong, i.tests},
	}[name] {
		maps.Copy(all, part)
	}
	return all
}

// TestRealBugFixes runs real bug fixes of Go and npm modules, and projects in the shapes of others, through
// whole runs: the right fix, its tests alone, a fix with a trivial test, nothing, and a wrong fix.
func TestRealBugFixes(t *testing.T) {
	t.Parallel()
	if !everything() {
		t.Skip("takes longer, and modules come from their registries: make e2e")
	}
	for name, i := range instances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command("bash", "-c", i.needs).CombinedOutput(); err != nil {
				t.Skipf("%s does not work here: %v: %s", i.needs, err, out)
			}
			w := newWorkshop(t)
			w.keepToolchains()
			base := i.base(&w)
			if i.fix != nil {
				i.takeFix(i.fix(&w))
			}
			got := map[string]string{}
			for _, arm := range arms {
				got[arm] = w.verdict(base, i.arm(arm), map[string]any{"name": "test", "run": i.check, "must": cmp.Or(i.must, "pass"), "proves": true}, strings.ReplaceAll(arm, " ", "-"))
			}
			must.Same(t, i.expect, got, "verdicts")
		})
	}
}

// takeFix fills what files of the fix and of its tests have, of which only the names are told.
func (i *instance) takeFix(from tree) {
	for _, part := range []tree{i.fixed, i.tests} {
		for name := range part {
			part[name] = from[name]
		}
	}
}

// keepToolchains has programs find what they need of the user's folder, and what Go compiled before.
func (w *workshop) keepToolchains() {
	w.t.Helper()
	home := must.Get(os.UserHomeDir())(w.t)
	for name, folder := range map[string]string{"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"} {
		if path := filepath.Join(home, folder); exists(path) {
			w.env = append(w.env, name+"="+path)
		}
	}
	w.env = append(w.env, "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local", "CARGO_NET_OFFLINE=true")
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		if value, err := exec.Command("go", "env", name).Output(); err == nil {
			w.env = append(w.env, name+"="+strings.TrimSpace(string(value)))
		}
	}
}

// verdict runs a job in which the agent writes files, and says what came of it.
func (w *workshop) verdict(base, change tree, check map[string]any, name string) string {
	w.t.Helper()
	dir, out := filepath.Join(w.dir, "project"), filepath.Join(w.dir, "out-"+name)
	if !exists(dir) {
		for name, text := range base {
			w.write(filepath.Join(dir, name), text)
		}
		w.repository(dir)
	}
	w.git(dir, "checkout", "--quiet", "--force", "main")
	w.writeJSON("job.yml", map[string]any{
		"version": 1, "name": name, "task": map[string]string{"prompt": "Fix it."}, "verify_attempts": 0,
		"limits": map[string]any{"diff_lines": 100_000, "diff_files": 1000},
		"verify": []any{check},
	})
	turns := []any{}
	if len(change) > 0 {
		turns = append(turns, map[string]any{"output": []any{map[string]any{"call": "exec_command", "arguments": map[string]any{"cmd": unpack(w.t, change), "yield_time_ms": 30_000}}}})
	}
	end := map[string]any{"output": []any{map[string]string{"say": "Done."}}}
	w.writeJSON("session.yml", map[string]any{"version": 1, "turns": append(turns, end, end)})
	printed, _ := w.agent("run", "job.yml", "--repo", dir, "--replay", "session.yml", "--out", out, "--publish", "local", "--no-baseline-cache") // its status is in the result
	w.t.Logf("%s", printed)
	var result struct {
		Outcome, Reason string
		Verify          []struct {
			Before, After string
			Failing       []struct{ Name string }
			Proof         []struct {
				File, Class, Note string
				Tests             []string
			}
			OldTests []struct{ Name string } `json:"old_tests"`
		}
	}
	readJSON(w.t, filepath.Join(out, "result.json"), &result)
	verdict := result.Outcome + "/" + result.Reason
	for _, row := range result.Verify {
		verdict += " " + row.Before + "→" + row.After
		for _, test := range row.Failing {
			verdict += "; fails " + test.Name
		}
		for _, proof := range row.Proof {
			verdict += "; " + proof.File + " " + proof.Class
			slices.Sort(proof.Tests)
			if proof.Note != "" {
				verdict += " (" + proof.Note + ")"
			}
			if len(proof.Tests) > 0 {
				verdict += " by " + strings.Join(proof.Tests, ", ")
			}
		}
		for _, old := range row.OldTests {
			verdict += "; was " + old.Name
		}
	}
	return verdict
}

func (w *workshop) writeJSON(name string, value any) {
	w.t.Helper()
	w.write(name, asJSON(w.t, value))
}

// unpack is a command that writes files.
func unpack(t *testing.T, files tree) string {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))})
		if err == nil {
			_, err = archive.Write([]byte(files[name]))
		}
		must.Do(t, err)
	}
	must.Do(t, archive.Close())
	must.Do(t, zipped.Close())
	return fmt.Sprintf("base64 -d <<'EOF' | tar -xzm\n%s\nEOF\n", base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// goModule is a module of Go as its proxy has it.
func goModule(module string) func(w *workshop) tree {
	return func(w *workshop) tree {
		w.t.Helper()
		cmd := exec.CommandContext(w.t.Context(), "go", "mod", "download", "-json", module)
		cmd.Dir = w.t.TempDir()
		raw, err := cmd.Output()
		if err != nil {
			w.t.Skipf("%s can't be had here: %v", module, err)
		}
		var of struct{ Dir string }
		must.Do(w.t, json.Unmarshal(raw, &of))
		files := readTree(w.t, of.Dir)
		needs := newWorkshop(w.t)
		for _, name := range []string{"go.mod", "go.sum"} {
			needs.write(name, files[name])
		}
		cmd = exec.CommandContext(w.t.Context(), "go", "mod", "download")
		cmd.Dir = needs.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Skipf("what %s needs can't be had here: %v: %s", module, err, out)
		}
		return files
	}
}

// fromNPM is a package of npm as its registry has it, with what its tests need of others.
func fromNPM(name string, needs ...string) func(w *workshop) tree {
	return func(w *workshop) tree {
		w.t.Helper()
		dir := w.t.TempDir()
		script := "npm pack --silent " + name + " && tar -xzf *.tgz"
		if len(needs) > 0 { // beside the package, which names more than its tests need
			script += " && npm install --silent --prefix needed --ignore-scripts " + strings.Join(needs, " ") + " && mv needed/node_modules package && echo node_modules/ >package/.gitignore"
		}
		cmd := exec.CommandContext(w.t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Skipf("%s can't be had here: %v: %s", name, err, out)
		}
		return readTree(w.t, filepath.Join(dir, "package"))
	}
}

func readTree(t *testing.T, dir string) tree {
	t.Helper()
	files := tree{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name] = string(raw)
		return err
	})
	must.Do(t, err)
	return files
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
