package main_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/place/confine"
)

// siege is a checkout with all around it that there is to attack, and a run in
// it that is played from outside.
type siege struct {
	workshop
	tier    string
	user    int
	world   attempts.World
	before  scene
	inodes  map[uint64]string // of the hidden files of the workspace, with their names
	server  *modeltest.Server
	modes   map[string]os.FileMode // of the machine's devices
	printed string                 // by the run
	runs    string                 // where the run directory is; empty for a folder of its own
}

// unconfined is the tier of a siege in which nothing holds.
const unconfined = "none"

// besiegedKey is the model's key.
const besiegedKey = "sk-of-the-besieged-0123456789abcdef"

// hiddenFiles are those that policy.deny_read and a variable hide in the workspace.
// Their first lines are no secret, so that a patch can fit.
var hiddenFiles = map[string]string{
	"conf/cred.json":   "plain\ncanary-of-conf-cred\n",
	"conf/google.json": "plain\ncanary-of-conf-google\n",
	"keys/id.txt":      "plain\ncanary-of-keys-id\n",
	"keys/logo.png":    pixels + "canary-of-keys-logo",
}

// pixels is a picture as it stands in a file.
var pixels = func() string {
	raw, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		panic(err)
	}
	return string(raw)
}()

// canaries are what nobody may see: neither the model nor who reads what a run
// leaves.
func canaries() []string {
	return []string{attempts.Secret, besiegedKey, "canary-of-conf-cred", "canary-of-conf-google", "canary-of-keys-id", "canary-of-keys-logo"}
}

// hides says whether something of the workspace is hidden: Landlock alone can't.
func (s *siege) hides() bool { return s.tier != "landlock" }

// overlaid says whether commands that may write work in an overlay of the workspace.
func (s *siege) overlaid() bool { return s.tier != "landlock" && s.tier != unconfined && overlaid() }

// besiegers are the programs of a siege where every user finds them.
func besiegers(t *testing.T) (folder string) {
	t.Helper()
	built := must.Get(helper("intruder"))(t)
	folder = sandboxtest.Place(t, sandbox.RemoveScratch)
	for name, path := range map[string]string{"agent-ci": binary, "intruder": built} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(read(t, path)), 0o755))
	}
	return folder
}

// newSiege makes the checkout and its surroundings, as files of user.
func newSiege(t *testing.T, programs, tier string, user int) *siege {
	t.Helper()
	base := sandboxtest.Place(t, sandbox.RemoveScratch)
	world := must.Get(attempts.NewWorld(base))(t)
	s := &siege{tier: tier, user: user, world: world, modes: map[string]os.FileMode{}, workshop: workshop{t, base, []string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + world.Home, "RUNNER_TEMP=" + world.Temp, attempts.CacheVariable + "=" + world.Cache, "TOKEN_OF_AGENT_CI=" + attempts.Secret,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "OPENAI_API_KEY=" + besiegedKey, lazyGC,
		"GIT_AUTHOR_NAME=Script", "GIT_AUTHOR_EMAIL=script@example.invalid", "GIT_COMMITTER_NAME=Script", "GIT_COMMITTER_EMAIL=script@example.invalid",
	}}}
	s.checkout()
	if s.overlaid() {
		s.world.OverlayFolder = filepath.Join(s.out(), confine.ScratchFolder, confine.AgentScratch, "tree")
	}
	if tier != "landlock" && tier != unconfined {
		s.world.Bound, s.world.Placeholder, s.world.Host = "registry.siege.example", "CANARY_PLACEHOLDER", "registry.siege.example"
		internet := proxytest.Start(t, map[string]http.Handler{s.world.Host + ":443": http.HandlerFunc(attempts.ServeHost)})
		s.write("ca.pem", string(internet.Authority))
		s.env = append(s.env, "HTTPS_PROXY="+internet.Proxy)
	}
	s.writeJSON("world.json", s.world)
	must.Do(t, os.Mkdir(filepath.Dir(s.out()), 0o755))
	sandboxtest.Give(t, base, user)
	return s
}

// checkout makes the repository that the run works in.
func (s *siege) checkout() {
	s.t.Helper()
	dir := s.world.Workspace
	s.git(s.dir, "init", "--quiet", "--initial-branch=main", dir)
	for name, text := range map[string]string{
		"greet.sh": "echo hello\n", "docs/readme.md": "one\ntwo\nthree\n", "docs/more/deep.md": "deep\n", "protected/keep.txt": "kept\nas it is\n",
		"four.png": pixels, ".gitignore": "/conf/*.json\n/conf/deep/\n/keys/\n/mnt/\n", "conf/plain.txt": "nothing hidden\n",
	} {
		s.write(filepath.Join(dir, name), text)
	}
	s.git(dir, "add", "--all")
	s.git(dir, "commit", "--quiet", "--message=begin")
	s.write(filepath.Join(dir, ".git/hooks/kept"), "x")
	if !s.hides() {
		for _, path := range s.world.Hidden() {
			must.Do(s.t, os.Remove(path))
		}
		return
	}
	s.git(dir, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic "+attempts.Secret)
	for name, text := range hiddenFiles {
		s.write(filepath.Join(dir, name), text)
	}
	s.env = append(s.env, "GOOGLE_APPLICATION_CREDENTIALS="+filepath.Join(dir, "conf/google.json"))
}

// job is what the run is told, with further keys.
func (s *siege) job(more map[string]any) map[string]any {
	policy := map[string]any{
		"protect": []string{"protected/**"}, "writable": []string{s.world.Extra}, "deny_read": []string{s.world.Denied, s.world.HiddenCache()},
		"change": map[string]string{"protected": "drop", "symlinks_out": "allow", "symlinks": "allow", "executables": "allow", "nested_git": "allow"},
	}
	if s.hides() {
		policy["deny_read"] = append(s.world.Hidden(), s.world.Denied, s.world.HiddenCache(), "conf/cred.json", "keys")
	}
	if s.world.Bound != "" {
		kinds, ca := []string{"agent", "setup", "verify"}, filepath.Join(s.dir, "ca.pem")
		policy["network"] = map[string]any{"proxy": "inherit"}
		policy["secrets"] = []any{
			map[string]any{"name": s.world.Placeholder, "from": "TOKEN_OF_AGENT_CI", "preset": "npm", "hosts": []string{s.world.Bound + attempts.PathOfHost}, "methods": []string{"GET"}, "commands": kinds, "ca": ca},
			map[string]any{"name": attempts.GitPlaceholder, "from": "TOKEN_OF_AGENT_CI", "preset": "git", "hosts": []string{s.world.Bound + attempts.RepositoryOfHost}, "commands": kinds, "ca": ca},
			map[string]any{"name": "IN_MAVEN", "from": "~/.netrc", "preset": "maven", "server": "siege", "hosts": []string{s.world.Bound + "/maven"}, "commands": kinds, "ca": ca},
		}
	}
	if s.tier == unconfined {
		policy["sandbox"] = string(grants.DangerFullAccess)
	}
	job := map[string]any{
		"version": 1, "name": "siege", "task": map[string]string{"prompt": "Hold."}, "policy": policy,
		"model":  map[string]any{"context_window": 1_000_000_000},
		"limits": map[string]any{"tool_calls": 50000, "diff_files": 5000, "diff_lines": 100000, "turns": 200, "time": "2m"},
	}
	maps.Copy(job, more)
	return job
}

// call is a call of a tool. Its name is its id, so that what it answered can be
// told from the rest.
func call(name, tool string, arguments map[string]any) map[string]any {
	return map[string]any{"id": name, "call": tool, "arguments": arguments}
}

func command(name, text string) map[string]any {
	return call(name, "exec_command", map[string]any{"cmd": text, "yield_time_ms": 30000})
}

// play runs a job in which the model makes the calls of each turn.
func (s *siege) play(job map[string]any, turns ...[]map[string]any) {
	s.t.Helper()
	var script []any
	end := []map[string]any{{"say": "Done."}} // said again where an end without a change is pointed out
	for i, calls := range append(turns, end, end) {
		for j, made := range calls {
			number(made, fmt.Sprintf(" (%d.%d)", i+1, j+1))
		}
		script = append(script, map[string]any{"output": calls})
	}
	var err error
	s.server, err = modeltest.StartScript("siege", strings.NewReader(asJSON(s.t, map[string]any{"version": 1, "turns": script})), modeltest.Options{Trusting: true})
	must.Do(s.t, err)
	defer s.server.Close()
	s.writeJSON("job.yml", job)
	s.before = s.look()
	s.run()
}

// number makes the id of a call another than all others.
func number(made map[string]any, number string) {
	if name, named := made["id"].(string); named {
		made["id"] = name + number
	}
	if item, is := made["item"].(map[string]any); is {
		item["id"], item["call_id"] = item["id"].(string)+number, item["call_id"].(string)+number
	}
}

// out is the run directory.
func (s *siege) out() string { return filepath.Join(s.dir, cmp.Or(s.runs, "run"), "out") }

func (s *siege) run() {
	s.t.Helper()
	ctx := s.t.Context()
	if end := late(s.t); !end.IsZero() {
		limited, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = limited
	}
	programs, _, _ := strings.Cut(strings.TrimPrefix(s.env[0], "PATH="), ":")
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "intruder"), "host", filepath.Join(s.dir, "world.json"), s.tier,
		filepath.Join(programs, "agent-ci"), "run", filepath.Join(s.dir, "job.yml"), "--repo", s.world.Workspace, "--out", s.out(), "--publish", "local", "--quiet")
	cmd.Env, cmd.Dir = append(s.env, "OPENAI_BASE_URL="+s.server.BaseURL()), s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.user != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.user), Gid: uint32(s.user)}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	s.printed = string(out)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if ctx.Err() != nil {
		s.printed += "the run did not end by itself"
	}
}

// besiegedResult is what a run says of itself.
type besiegedResult struct {
	RunID                   string `json:"run_id"`
	Outcome, Reason, Branch string
	Verify                  []struct{ Name, Before, After string }
	Sandbox                 struct {
		Level    string
		WorkTree string `json:"work_tree"`
	}
}

// result reads what the run says of itself, and skips where the machine does not
// offer the tier.
func (s *siege) result() (r besiegedResult, err error) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.out(), "result.json"))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, err
	}
	if r.Outcome == "sandbox_unavailable" || r.Sandbox.Level != s.tier && r.Sandbox.Level != "" {
		sandboxtest.SkipUnlessOffered(s.t, s.tier, fmt.Errorf("the level is %q: %s", r.Sandbox.Level, s.printed))
	}
	return r, nil
}

// outputs is all that the commands of the run printed.
func (s *siege) outputs() string {
	var all strings.Builder
	folder := os.DirFS(s.out())
	for _, pattern := range []string{"outputs/*", "transcript.jsonl"} {
		names, _ := filepath.Glob(filepath.Join(s.out(), pattern))
		for _, name := range names {
			f, err := folder.Open(strings.TrimPrefix(name, s.out()+"/"))
			if err != nil {
				continue
			}
			_, _ = io.Copy(&all, f)
			f.Close()
		}
	}
	return all.String()
}
