package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// workshop is a folder of a test that runs git and agent-ci itself, and the
// environment of both.
type workshop struct {
	t   *testing.T
	dir string
	env []string
}

// lazyGC has runs collect garbage seldom: those of tests are small and many, and a seventh of their processor
// time would go there.
const lazyGC = "GOGC=400"

// openly has runs confine nothing, in tests about something else: confining takes a third of a run.
const openly = "AGENT_CI_POLICY_SANDBOX=" + string(grants.DangerFullAccess)

func read(t testing.TB, path string) string {
	t.Helper()
	raw := must.Get(os.ReadFile(path))(t)
	return string(raw)
}

// readJSON reads a file of JSON into value.
func readJSON(t testing.TB, path string, value any) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(read(t, path)), value))
}

// asJSON returns value as JSON, which YAML has too.
func asJSON(t testing.TB, value any) string {
	t.Helper()
	raw := must.Get(json.Marshal(value))(t)
	return string(raw)
}

func newWorkshop(t *testing.T, env ...string) workshop {
	t.Helper()
	dir := t.TempDir()
	if confines() == sandbox.LevelNone {
		env = append(env, openly)
	}
	return workshop{t, dir, append([]string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", lazyGC,
		"GIT_AUTHOR_NAME=Script", "GIT_AUTHOR_EMAIL=script@example.invalid", "GIT_COMMITTER_NAME=Script", "GIT_COMMITTER_EMAIL=script@example.invalid",
	}, env...)}
}

// path returns an absolute path; a relative one is below the workshop.
func (w *workshop) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(w.dir, path)
}

// program makes a file that can be executed.
func (w *workshop) program(path, text string) {
	w.t.Helper()
	w.write(path, text)
	must.Do(w.t, os.Chmod(w.path(path), 0o755))
}

// write makes a file with its folders; a relative path lies in the workshop.
func (w *workshop) write(path, text string) {
	w.t.Helper()
	must.Write(w.t, w.path(path), text)
}

func (w *workshop) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", noMaintenance}, args...)...)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository turns a folder into a repository and commits all its files.
func (w *workshop) repository(dir string) {
	w.t.Helper()
	w.git(w.dir, "init", "--quiet", "--initial-branch=main", dir)
	w.git(dir, "add", "--all")
	w.git(dir, "commit", "--quiet", "--allow-empty", "--message=begin")
}

// keepOverlaysOff has runs work in a private tree: git is told to overlook a file of the checkout that is
// tracked and that nobody changes.
func (w *workshop) keepOverlaysOff(dir string) {
	w.t.Helper()
	first, _, _ := strings.Cut(w.git(dir, "ls-files"), "\n")
	w.git(dir, "update-index", "--skip-worktree", first)
}

// command returns agent-ci with arguments, not started yet, and what it will print.
func (w *workshop) command(args ...string) (*exec.Cmd, *strings.Builder) {
	cmd, out := exec.Command(binary, args...), &strings.Builder{}
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, w.dir, out, out
	return cmd, out
}

func (w *workshop) agent(args ...string) (string, error) {
	cmd, out := w.command(args...)
	err := cmd.Run()
	return out.String(), err
}

// prepared are the arguments of a run of job.yml in the folder checkout, by session.yml.
var prepared = []string{"run", "job.yml", "--repo", "checkout", "--replay", "session.yml", "--out", "out", "--publish", "none"}

// prepare makes the folder checkout for a run whose home is a folder beside it.
func (w *workshop) prepare() {
	w.t.Helper()
	w.t.Cleanup(func() { _ = sandbox.RemoveScratch(w.path("out")) })
	w.write("checkout/file", "what the file holds\n")
	w.write("home/.profile", "\n")
	w.env = append(w.env, "HOME="+w.path("home"))
	w.repository(w.path("checkout"))
}

// replays replays a record, which has to differ in that, or in nothing.
func (w *workshop) replays(t *testing.T, differs string, args ...string) {
	t.Helper()
	told, err := w.agent(append([]string{"replay", "--quiet"}, args...)...)
	if differs == "" && err != nil || differs != "" && (err == nil || !strings.Contains(told, "\n"+differs+"\n--- recorded\n")) {
		t.Errorf("%q: %v, want a difference in %q\n%s", args[1:], err, differs, told)
	}
}
