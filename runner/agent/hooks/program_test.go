package hooks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestRefusesFilesWritableByCommands names files of a workspace and of another folder that
// commands may write to, in all the ways that words have.
func TestRefusesFilesWritableByCommands(t *testing.T) {
	dir := t.TempDir()
	tree, root, writable, tools := filepath.Join(dir, "run", "base"), filepath.Join(dir, "repo"), filepath.Join(dir, "writable"), filepath.Join(dir, "tools")
	for _, folder := range []string{tree, root, writable, tools} {
		must.Do(t, os.MkdirAll(folder, 0o700))
		for _, name := range []string{"auditor", "x.sh"} {
			must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o700))
		}
	}
	for name, to := range map[string]string{tools + "/linked": writable + "/auditor", dir + "/link": writable, tree + "/out.sh": root + "/x.sh"} {
		must.Do(t, os.Symlink(to, name))
	}
	rooms := SandboxProvider{Environ: []string{"PATH=" + strings.Join([]string{dir + "/link", writable, root, tools, "."}, ":"), "HOME=" + tools}, WritableByCommands: []string{root, writable}}
	for _, refused := range [][]string{
		{root + "/x.sh"},
		{"sh", root + "/x.sh"},
		{"sh", root + "/../repo/x.sh"},
		{"sh", dir + "/link/x.sh"},
		{"sh", writable + "/later.sh"},
		{"env", "PYTHONPATH=/usr/lib:" + root + "/src", "python3"},
		{"sh", "--rcfile=" + writable + "/x.sh"},
		{"python3", "-I" + root + "/src"},
		{"sh", "out.sh"},
		{"sh", "../../repo/x.sh"},
		{"linked"},
		{tools + "/linked"},
		{"../x"},
	} {
		h := Hook{ActiveHook: transcript.ActiveHook{Run: refused}}
		must.Fail(t, "", must.Err(h.argv(rooms, tree)), refused, "is started as")
	}
	for _, taken := range [][][]string{
		{{"auditor", "x.sh"}, {tools + "/auditor", "x.sh"}}, // not what a name finds elsewhere
		{{"./x.sh", "-v", "a=b"}, {tree + "/x.sh", "-v", "a=b"}},
		{{tools + "/auditor"}, {tools + "/auditor"}},
		{{"~/auditor", "${HOME}/x.sh", "-c ${HOME}"}, {tools + "/auditor", tools + "/x.sh", "-c " + tools}},
		{{"auditor", "-c", "test -f " + root + "/x.sh"}, {tools + "/auditor", "-c", "test -f " + root + "/x.sh"}},
	} {
		h := Hook{ActiveHook: transcript.ActiveHook{Run: taken[0]}}
		must.Same(t, taken[1], must.Get(h.argv(rooms, tree))(t), taken[0], "is started as")
	}
	for home, want := range map[string]string{root: "may write", "": "HOME is not set"} {
		must.Fail(t, want, must.Err(Hook{ActiveHook: transcript.ActiveHook{Run: []string{"~/x.sh"}}}.argv(SandboxProvider{Environ: []string{"HOME=" + home}, WritableByCommands: rooms.WritableByCommands}, tree)), "with the home", home)
	}
	for word, problem := range map[string]string{"x.sh": "", "missing.sh": "no such file in the base commit"} {
		err := Hook{ActiveHook: transcript.ActiveHook{Run: []string{"sh", word}}}.RequireStartable(SandboxProvider{Environ: os.Environ()}, tree)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("sh %s: %v", word, err)
		}
	}
}

// TestHidesVariablesThatLoadCode looks at all that a hook gets.
func TestHidesVariablesThatLoadCode(t *testing.T) {
	h := &Hooks{Record: record.New("run-1", nil), Facts: Facts{WorkDir: "/repo"}, Sandboxes: SandboxProvider{
		Environ: []string{
			"PATH=/bin:/repo/bin", "HOME=/repo/home", "LANG=C", "LC_ALL=C", "CI=true", "PYTHONPATH=/repo/src", "NODE_OPTIONS=--require=/repo/x.js", "NODE_PATH=/repo",
			"RUBYLIB=/repo", "GEM_PATH=/repo", "LD_LIBRARY_PATH=/repo", "JAVA_HOME=/repo", "VIRTUAL_ENV=/repo", "GITHUB_TOKEN=x", "PERL5LIB=/repo",
		},
		WritableByCommands: []string{"/repo"},
	}}
	want := []string{"AGENT_CI_BASE_TREE=/base", "AGENT_CI_HOOK=h", "AGENT_CI_RUN_ID=run-1", "AGENT_CI_WORKSPACE=/repo", "CI=true", "LANG=C", "LC_ALL=C", "PATH=/bin"}
	must.Same(t, want, slices.DeleteFunc(h.env(Hook{ActiveHook: transcript.ActiveHook{Name: "h"}}, "/base"), func(v string) bool { return strings.HasPrefix(v, "CLAUDE_PROJECT_DIR=") }))
}
