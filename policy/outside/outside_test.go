package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestStartsProgramByItsRow(t *testing.T) {
	t.Setenv("SECRET_OF_THE_PROCESS", "x")
	env := []string{"PATH=/bin", "GITHUB_TOKEN=x", "GIT_CONFIG_KEY_7=a", "LC_ALL=C"}
	for use, want := range map[*Use][]string{
		GitRemote: {"PATH=/bin", "GIT_CONFIG_KEY_7=a", "LC_ALL=C"}, GitVersion: {}, Unconfined: env, Stage: {},
	} {
		out := must.Get(use.Command(t.Context(), "/usr/bin/env", Root, env).Output())(t)
		must.Same(t, strings.Join(want, "\n"), strings.TrimSpace(string(out)), use.Name)
	}
}

func TestRefusesViolationOfRow(t *testing.T) {
	for name, cmd := range map[string]*exec.Cmd{
		"a program by its name":    Unconfined.Command(t.Context(), "true", Root, nil),
		"a program from here":      Unconfined.Command(t.Context(), "./true", Root, nil),
		"no folder":                Unconfined.Command(t.Context(), "/bin/true", "", nil),
		"a folder from here":       Unconfined.Command(t.Context(), "/bin/true", "x", nil),
		"another folder":           GitVersion.Command(t.Context(), "/bin/true", t.TempDir(), nil),
		"git add":                  GitPrivate.Command(t.Context(), "/bin/true", "/", nil, "-c", "core.fsmonitor=false", "add", "-A"),
		"git without a command":    GitConfig.Command(t.Context(), "/bin/true", "/", nil, "-c", "a.b=config"),
		"a use that is in no list": new(Use).Command(t.Context(), "/bin/true", Root, nil),
	} {
		must.Fail(t, "", cmd.Run(), name, "it was started")
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"here/tool": 0o755, "bin/tool": 0o755, "plain/tool": 0o644} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, mode)))
	}
	t.Chdir(filepath.Join(dir, "here"))
	for list, want := range map[string]string{
		":.:" + dir + "/plain:" + dir + "/bin": dir + "/bin/tool", ":.:../here": "", "": "", dir + "/missing:" + dir: "",
	} {
		must.Same(t, want, Find("tool", list), list)
	}
}

// These read a work tree that others wrote, and start what core.fsmonitor of a submodule in it names.
func TestStartsNoGitThatReadsSubmodules(t *testing.T) {
	for _, use := range []*Use{GitPrivate, GitConfig} {
		for _, command := range []string{"add", "status", "diff", "diff-files", "diff-index", "commit", "stash", "checkout", "reset", "merge", "rebase", "submodule"} {
			if len(use.commands) == 0 || slices.Contains(use.commands, command) {
				t.Errorf("%s: %s", use.Name, command)
			}
		}
	}
}

// Nothing is noted by a program that was built for use.
func TestOnlyTestsNote(t *testing.T) {
	must.Same(t, "", auditVariable, "the variable is")
	file := filepath.Join(t.TempDir(), "starts")
	t.Setenv("AGENT_CI_TEST_STARTS", file)
	note := func() {
		must.Do(t, GitRemote.Command(context.Background(), "/bin/true", Root, []string{"PATH=/bin", "MORE=x"}, "a").Run())
	}
	note()
	must.Is(t, fs.ErrNotExist, must.Err(os.Stat(file)), "something was noted")
	auditVariable = "AGENT_CI_TEST_STARTS"
	defer func() { auditVariable = "" }()
	note()
	raw, err := os.ReadFile(file)
	var got Start
	if err != nil || json.Unmarshal(raw, &got) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	must.Same(t, Start{GitRemote.Name, "/bin/true", Root, []string{"a"}, []string{"PATH"}, []string{"MORE"}}, got, "it noted")
}

// docs/internals/security.md has the list as it is here.
func TestListIsDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/internals/security.md"))(t)
	must.Same(t, true, strings.Contains(string(page), "\n"+markdownTable()+"\n"), "docs/internals/security.md has\n"+markdownTable())
	names := map[string]bool{}
	for _, u := range Uses() {
		if names[u.Name] || slices.Contains([]string{u.Name, u.program, u.folder, u.starts}, "") {
			t.Errorf("the row of %q is not whole, or there are two", u.Name)
		}
		names[u.Name] = true
	}
}

// markdownTable returns the uses as a Markdown table with their variables.
func markdownTable() string {
	var b strings.Builder
	b.WriteString("| what | program, and who chooses it | folder | environment | starts in turn |\n|---|---|---|---|---|\n")
	for _, u := range Uses() {
		what := u.Name
		if len(u.commands) > 0 {
			what += ": `" + strings.Join(u.commands, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", what, u.program, cmp.Or(map[string]string{Root: "`/`"}[u.folder], u.folder), cmp.Or(u.words, "none"), u.starts)
	}
	for _, list := range []struct {
		name  string
		names []string
	}{{"The tools' variables", toolVariables}, {"The remotes' variables", remoteVariables}, {"Git's variables", GitPrivate.set}} {
		fmt.Fprintf(&b, "\n%s: `%s`.\n", list.name, strings.Join(list.names, "`, `"))
	}
	return b.String()
}
