package program_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/outside"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain/git": 0o644, "work/git": 0o755, "good/git": 0o755} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777), os.WriteFile(filepath.Join(dir, name), nil, mode)))
	}
	must.Do(t, os.MkdirAll(filepath.Join(dir, "folder/git"), 0o777))
	at := func(names ...string) string {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		return strings.Join(names, ":")
	}
	for list, want := range map[string]string{
		at("none", "folder", "plain", "work", "good"): at("good/git"), at("plain", "work"): "", "": "", "good": "",
	} {
		must.Same(t, want, outside.Find("git", program.SearchPathOutside(list, at("work"))), list)
	}
}

// standIn is a script in the place of git.
func standIn(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git")
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

func variables(t *testing.T, git program.Program, command string) []string {
	t.Helper()
	git.Path = standIn(t, "env")
	out := must.Get(git.Run(t.Context(), "/", nil, command))(t)
	return strings.Split(string(out), "\n")
}

func TestGitSeesFewVariables(t *testing.T) {
	r := gittest.New(t)
	environ := []string{
		"PATH=" + filepath.Dir(gittest.Program(t)) + ":/usr/bin:/bin:" + r.Dir + "/bin", "HOME=" + t.TempDir(), "GITHUB_TOKEN=hunter22", "GIT_DIR=/nowhere",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=given", "GIT_SSH_COMMAND=hunter22", "LC_ALL=de",
	}
	user := program.AsUser(gittest.Program(t), environ, r.Path(".git"), r.Dir)
	isolated := program.Isolated(gittest.Program(t), environ, r.Dir, r.Path(".git"), r.Dir)
	for command, git := range map[string]program.Program{"config": user, "check-attr": isolated, "fetch": program.Remote(filepath.Dir(gittest.Program(t))+":bin:/usr/bin:/bin", environ)} {
		for _, v := range variables(t, git.With("GIT_INDEX_FILE=more", "LC_ALL=C.UTF-8"), command) {
			if strings.Contains(v, "hunter22") || strings.Contains(v, "/nowhere") || strings.HasPrefix(v, "PATH=") && (strings.Contains(v, r.Dir) || strings.Contains(v, ":bin")) {
				t.Errorf("it sees %s", v)
			}
		}
		if all := variables(t, git.With("GIT_TERMINAL_PROMPT=1"), command); !slices.Contains(all, "GIT_TERMINAL_PROMPT=1") || !slices.Contains(all, "LC_ALL=C") {
			t.Errorf("it sees %q", all)
		}
	}
	out, err := user.Run(t.Context(), r.Dir, nil, "config", "user.name")
	must.Same(t, "given\n", string(out), "with the user's configuration")
	if err != nil || !slices.Contains(variables(t, isolated, "check-attr"), "GIT_CONFIG_GLOBAL="+os.DevNull) {
		t.Errorf("%v, or it is not without", err)
	}
}

func TestRunReportsGitOutcome(t *testing.T) {
	r := gittest.New(t)
	git := program.Isolated(gittest.Program(t), os.Environ(), r.Dir, r.Path(".git"), r.Dir)
	out, err := git.Run(t.Context(), r.Dir, strings.NewReader("abc"), "check-attr", "--stdin", "text")
	if err != nil || string(out) != "abc: text: unspecified\n" {
		t.Errorf("check-attr: %q, %v", out, err)
	}
	_, err = git.Run(t.Context(), r.Dir, nil, "-c", "a.b=c", "read-tree", "nothing")
	if err == nil || !strings.HasPrefix(err.Error(), "git read-tree: fatal: ") || program.ExitStatus(err) != 128 {
		t.Errorf("read-tree: %v, %d", err, program.ExitStatus(err))
	}
	git.Path = standIn(t, "echo no space left on device >&2; exit 3")
	_, err = git.Run(t.Context(), r.Dir, nil, "write-tree")
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || program.ExitStatus(err) != 3 {
		t.Errorf("without space: %v, %d", err, program.ExitStatus(err))
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it ended")
	cancel(why)
	if _, err := git.Run(ended, r.Dir, nil, "write-tree"); !errors.Is(err, why) || program.ExitStatus(err) != -1 {
		t.Errorf("after the end of the context: %v", err)
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestStreamReportsWriteError(t *testing.T) {
	r := gittest.New(t)
	git := program.Isolated(standIn(t, "exec cat"), os.Environ(), r.Dir, r.Path(".git"), r.Dir)
	long := bytes.NewReader(make([]byte, 1<<20))
	must.Is(t, syscall.ENOSPC, git.Stream(t.Context(), r.Dir, io.Reader(long), full{}, "read-tree"))
}

func TestCheck(t *testing.T) {
	if version, err := program.Check(t.Context(), gittest.Program(t)); err != nil || !strings.HasPrefix(version, "2.") {
		t.Errorf("the git of this machine: %q, %v", version, err)
	}
	says := func(script string) string { return standIn(t, script) }
	for path, usable := range map[string]bool{
		says("echo git version 2.38.0"): true, says("echo 'git version 2.39.5 (Apple Git-154)'"): true, says("echo git version 3.0.0-rc1"): true,
		says("echo git version 2.37.9"): false, says("echo git version 1.99"): false, says("echo git version 2"): false, says("echo ok"): false,
		says("exit 1"): false, says("echo git version 2.50; exit 1"): false, filepath.Join(t.TempDir(), "git"): false, "": false,
	} {
		_, err := program.Check(t.Context(), path)
		if errors.As(err, new(*program.UnusableError)) == usable || usable != (err == nil) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it ended")
	cancel(why)
	must.Is(t, why, must.Err(program.Check(ended, gittest.Program(t))), "after the end of the context")
}

// The version is asked for only of a git that did not report it while it read the configuration.
func TestCheckedConfig(t *testing.T) {
	r := gittest.New(t)
	starts := filepath.Join(t.TempDir(), "starts")
	noting := "echo $* >>" + starts + "\n"
	const config = "config core.bare\n"
	for script, want := range map[string]struct{ out, starts string }{
		"exec " + gittest.Program(t) + ` "$@"`:                                                {"false\n", config},
		`[ "$*" = --version ] && echo git version 2.38.1 || echo "$*"`:                        {config, config + "--version\n" + config},
		`[ "$*" = --version ] && echo git version 2.37.9`:                                     {"", config + "--version\n"},
		`[ "$*" = --version ] && echo git version 2.37.9 || { echo version 2.37.9 >&2; }`:     {"", config + "--version\n"},
		`[ "$*" = --version ] && echo git version 2.38.1 || { echo version 3.1 >&2; exit 1;}`: {"", config + "--version\n" + config},
	} {
		must.Do(t, os.WriteFile(starts, nil, 0o600))
		git := program.AsUser(standIn(t, noting+script), os.Environ(), r.Path(".git"), r.Dir)
		out, err := git.CheckedConfig(t.Context(), r.Dir, "core.bare")
		must.Same(t, want.out, string(out), script)
		must.Same(t, want.starts, string(must.Get(os.ReadFile(starts))(t)), script)
		must.Same(t, strings.Contains(script, "2.37.9"), errors.As(err, new(*program.UnusableError)), script, err)
	}
}
