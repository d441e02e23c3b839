package main_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
	"github.com/agent-ci/agent-ci/runner/place/confine"
)

// TestNothingGetsOutOfARun makes every attempt in the setup, in a command of the
// agent and in a check of whole runs, and every way to name what is out of bounds
// through every tool of the process itself.
func TestNothingGetsOutOfARun(t *testing.T) {
	t.Parallel()
	programs := besiegers(t)
	for _, tier := range []string{"full", "namespaces", "landlock"} {
		for name, user := range sandboxtest.Users(t) {
			if there := tier + "/" + name; !everything() && (there == "namespaces/nobody" || there == "landlock/root") {
				continue
			}
			t.Run(tier+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newSiege(t, programs, tier, user)
				s.attackEverywhere()
				result, err := s.result()
				must.Is(t, nil, err, s.printed)
				must.Same(t, "changed", result.Outcome, "the run ended as", result, s.printed)
				must.Same(t, (map[bool]string{true: confine.InOverlay, false: confine.PrivateTree})[s.overlaid()], result.Sandbox.WorkTree, "commands worked in")
				for _, breach := range s.breaches() {
					t.Error(breach)
				}
				if n := strings.Count(s.outputs(), "tried "); n < 3 {
					t.Errorf("the attempts were made %d times", n)
				}
			})
		}
	}
}

// The same finds breaches of every kind where nothing confines.
func TestBatteryFindsBreaches(t *testing.T) {
	t.Parallel()
	users := sandboxtest.Users(t)
	user := slices.Max(slices.Collect(maps.Values(users)))
	s := newSiege(t, besiegers(t), unconfined, user)
	targets := s.targets()
	s.play(s.job(map[string]any{"verify": []any{map[string]string{"run": lookAround}}, "verify_attempts": 0}),
		some(readCalls(targets)), []map[string]any{command("show", "cd "+s.world.Workspace+" && cp keys/id.txt \"$OLDPWD/shown.txt\" && echo changed >>keys/id.txt")}, []map[string]any{command("attack", s.attack())}, some(patchCalls(targets)))
	found := s.breaches()
	for _, kind := range []string{"outside: ", "hidden: ", "request: ", "run directory: ", "git: ", "attempt: "} {
		must.Same(t, true, slices.ContainsFunc(found, func(breach string) bool { return strings.HasPrefix(breach, kind) }), "no breach begins with", kind, strings.Join(found, "\n"), s.printed)
	}
}

// It also finds what no attempt of today comes to.
func TestBatteryFindsLeftovers(t *testing.T) {
	t.Parallel()
	programs := besiegers(t)
	s := newSiege(t, programs, "full", os.Getuid())
	left := exec.Command(filepath.Join(programs, "intruder"), "linger", s.dir)
	must.Do(t, left.Start())
	program := filepath.Join(s.world.Workspace, "greet.sh")
	must.Do(t, os.Chmod(program, 0o755|os.ModeSetuid))
	s.write(filepath.Join(s.world.Workspace, "protected/keep.txt"), "changed")
	s.git(s.world.Workspace, "commit", "--quiet", "--all", "--message=change")
	s.git(s.world.Workspace, "branch", "--quiet", "change")
	s.git(s.world.Workspace, "reset", "--quiet", "--soft", "HEAD~")
	for kind, found := range map[string][]string{"process: ": s.survivors(), "rights: ": s.rights(), "commit: ": s.published("change")} {
		if len(found) != 1 || !strings.HasPrefix(found[0], kind) {
			t.Errorf("%s%q", kind, found)
		}
	}
	_ = left.Wait() // it was killed
}

func TestHidesFilesInReadOnlyCheckout(t *testing.T) {
	t.Parallel()
	s := newSiege(t, besiegers(t), "full", os.Getuid())
	job := s.job(nil)
	job["policy"].(map[string]any)["sandbox"] = string(grants.ReadOnly)
	targets := s.targets()
	s.play(job, some(readCalls(targets)), some(patchCalls(targets)))
	for _, breach := range s.breaches() {
		t.Error(breach)
	}
}

// TestCachesStayUnpoisoned has the agent, the code of the change in a check, and a test of the change try
// everything on what setup and the baseline left in caches and in ignored files. Every later run of a
// check finds that as it was, and the user's folders stay as they were.
func TestCachesStayUnpoisoned(t *testing.T) {
	t.Parallel()
	if !overlaid() {
		t.Skip("caches are kept where commands work in an overlay")
	}
	programs := besiegers(t)
	for _, tier := range []string{"full", "namespaces"} {
		for name, user := range sandboxtest.Users(t) {
			for _, runs := range []string{"run", "home"} {
				switch there := tier + "/" + name + "/" + runs; {
				case everything(), there == "full/nobody/run", there == "full/user/run", there == "namespaces/root/home", there == "namespaces/user/home":
				default:
					continue
				}
				t.Run(tier+"/"+name+"/"+runs, func(t *testing.T) {
					t.Parallel()
					s := newSiege(t, programs, tier, user)
					s.runs = runs
					s.poison()
					result, err := s.result()
					if err != nil || result.Outcome != "changed" || strings.Contains(s.printed, "caches_") {
						t.Errorf("the run ended as %+v, %v:\n%s", result, err, s.printed)
					}
					if runs == "run" {
						for _, breach := range s.breaches() {
							t.Error(breach)
						}
					}
					s.expectUnpoisoned()
				})
			}
		}
	}
}

// poison plays a run in which agent, checks and tests attack caches.
func (s *siege) poison() {
	s.t.Helper()
	dir := s.world.Workspace
	caches := strings.Join([]string{filepath.Join(s.world.Home, "siege"), filepath.Join(s.world.Cache, "siege"), filepath.Join(dir, "built")}, " ")
	layers := filepath.Join(s.out(), confine.ScratchFolder)
	for name, text := range map[string]string{
		"poison.sh": fmt.Sprintf(poisonScript, caches, layers), "state.sh": fmt.Sprintf(stateScript, caches), "fill.sh": fmt.Sprintf(fillScript, caches),
		"greet_test.sh": "true\n", ".gitignore": "/conf/*.json\n/conf/deep/\n/keys/\n/mnt/\n/built/\n",
	} {
		s.write(filepath.Join(dir, name), text)
	}
	s.git(dir, "-c", "safe.directory=*", "add", "--all") // it may be another user's already
	s.git(dir, "-c", "safe.directory=*", "commit", "--quiet", "--message=caches")
	sandboxtest.Give(s.t, dir, s.user)
	check := "sh state.sh; sh greet.sh; sh greet_test.sh && status=0 || status=1; sh fill.sh base; sh state.sh; exit $status"
	s.play(s.job(map[string]any{
		"setup":           []any{map[string]string{"run": "sh fill.sh setup"}},
		"verify":          []any{map[string]any{"name": "first", "run": check, "proves": true}, map[string]string{"name": "second", "run": check}},
		"verify_attempts": 0, "verify_tests": []string{"*_test.sh"},
	}), []map[string]any{
		call("poison", "exec_command", map[string]any{"cmd": "sh poison.sh", "yield_time_ms": 1000}), // and something goes on
		command("change", `echo 'sh poison.sh # check' >>greet.sh; printf '%s\n' 'sh poison.sh' 'grep -q check greet.sh' >greet_test.sh`),
	})
}

// expectUnpoisoned compares what runs of checks found with what their run on the base left.
func (s *siege) expectUnpoisoned() {
	s.t.Helper()
	states := func(log string) (all []string) {
		raw := read(s.t, filepath.Join(s.out(), "outputs", log))
		for _, text := range strings.SplitAfter(raw, "end of state\n") {
			if _, state, is := strings.Cut(text, "state\n"); is {
				all = append(all, state)
			}
		}
		return all
	}
	for log, base := range map[string]string{
		"verify-1-1-first.log": "verify-0-1-first.log", "old-1-1-first.log": "verify-0-1-first.log", "proof-1-1-first.log": "verify-0-1-first.log",
		"proof-1-rerun-1-first.log": "verify-0-1-first.log", "verify-1-2-second.log": "verify-0-2-second.log",
	} {
		left, found := states(base), states(log)
		if len(left) != 2 || len(found) != 2 {
			s.t.Fatalf("%s has %d states, %s %d", base, len(left), log, len(found))
		}
		if left[1] != found[0] || strings.Count(found[0], " base\n") < 30 || strings.Count(found[0], " setup\n") < 30 {
			s.t.Errorf("%s left\n%s\nand %s found\n%s", base, left[1], log, found[0])
		}
		if found[1] == found[0] {
			s.t.Errorf("in %s nothing was changed", log)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(s.world.Home, "siege")); err == nil {
		s.t.Errorf("the user's folder has %v", entries)
	}
}

// Scripts of poison: fillScript fills folders once, stateScript prints what is in them, and poisonScript
// has the intruder attack them, and what may keep them.
const (
	fillScript = `for dir in %s; do
	mkdir -p "$dir/$1/folder"
	for name in append write link mode time replace truncate remove attribute mapped folder/move folder/link folder/opaque; do
		test -e "$dir/$1/$name" || echo "$1" >"$dir/$1/$name"
	done
done
`
	stateScript = `echo state
for dir in %s; do
	find "$dir" -type f -printf '%%p %%m %%s %%Ts\n' 2>/dev/null | LC_ALL=C sort | while read -r file state; do
		read -r text <"$file"
		echo "$file $state $text"
	done
	find "$dir" -type f -exec cksum {} + 2>/dev/null | LC_ALL=C sort
	find "$dir" ! -type f 2>/dev/null | LC_ALL=C sort
done
echo end of state
`
	poisonScript = `exec 2>/dev/null
for dir in %[1]s; do
	for by in setup base; do
		(while :; do echo late >>"$dir/$by/append"; sleep 1; done) >/dev/null &
		intruder poison "$dir/$by" "/proc/self/root$dir/$by"
	done
done
for layer in %[2]s %[2]s/caches-1 %[2]s/caches-2 %[2]s/setup; do
	intruder poison $(find "$layer" -type d -name setup -o -type d -name base)
	mkdir -p "$layer/home/upper/siege/base" && echo poison >"$layer/home/upper/siege/base/append"
done
true
`
)

// Without network namespaces nothing holds commands to the hosts of a secret, which is
// found before one is run.
func TestSecretsNeedNetworkNamespace(t *testing.T) {
	t.Parallel()
	programs := besiegers(t)
	for _, kind := range []string{"agent", "setup", "verify"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t, programs, "landlock", os.Getuid())
			run := []any{map[string]string{"run": "echo it ran"}}
			job := s.job(map[string]any{"setup": run, "verify": run})
			job["policy"].(map[string]any)["secrets"] = []any{map[string]any{
				"name": "CANARY", "from": "TOKEN_OF_AGENT_CI", "hosts": []string{"registry.siege.example"}, "commands": []string{kind},
			}}
			s.play(job, []map[string]any{command("change", "echo it ran")})
			if !strings.HasPrefix(s.printed, "sandbox_unavailable/network: ") || !strings.Contains(s.printed, "keeps secrets from them") {
				t.Errorf("the run ended as %s", s.printed)
			}
			must.None(t, must.Get(os.ReadDir(filepath.Join(s.out(), "outputs")))(t), "there are outputs of commands")
		})
	}
}

// TestLandlockProtectsCheckoutGit makes attempts on .git in every place where commands run: they
// find one of their own there.
func TestLandlockProtectsCheckoutGit(t *testing.T) {
	t.Parallel()
	programs := besiegers(t)
	for i, place := range []string{"setup", "agent", "check"} {
		for j, name := range []string{"write a git hook", "replace git's configuration", "replace git's HEAD", "delete git's index", "change the mode of a hook"} {
			if (i+j)%3 > 0 && !everything() {
				continue
			}
			t.Run(place+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newSiege(t, programs, "landlock", os.Getuid())
				s.attemptAt(place, name)
				result, err := s.result()
				if got := result.Outcome + "/" + result.Reason; err != nil || got != "changed/committed" {
					t.Errorf("the run ended as %s: %v\n%s", got, err, s.printed)
				}
				if found := s.breaches(); len(found) > 0 {
					t.Error(strings.Join(found, "\n"))
				}
			})
		}
	}
}

// attemptAt plays a run in which one attempt is made.
func (s *siege) attemptAt(place, name string) {
	s.t.Helper()
	attempt := fmt.Sprintf("intruder attempt %s/world.json %q || true", s.dir, name)
	job, agents := s.job(nil), "echo changed >>greet.sh"
	switch place {
	case "agent":
		agents += "; " + attempt
	case "setup":
		job["setup"] = []any{map[string]string{"run": attempt}}
	case "check":
		job["verify"] = []any{map[string]string{"run": attempt}}
	}
	s.play(job, []map[string]any{command("change", agents)})
}

// attack is the command that makes the attempts.
func (s *siege) attack() string {
	return "intruder attack " + filepath.Join(s.dir, "world.json") + " " + s.tier
}

// attackEverywhere plays a run that does all there is to do.
func (s *siege) attackEverywhere() {
	s.t.Helper()
	job := s.job(map[string]any{
		"setup":           []any{map[string]string{"name": "attack", "run": s.attack()}},
		"verify":          []any{map[string]string{"name": "attack", "run": "grep -q changed greet.sh || exit 0; " + s.attack()}, map[string]string{"name": "look", "run": lookAround}},
		"verify_attempts": 0,
	})
	targets := s.targets()
	s.play(job,
		[]map[string]any{command("attack", s.attack())},
		[]map[string]any{command("ways", makeWays(targets)), command("cache", fillCache)},
		some(readCalls(targets)),
		[]map[string]any{command("move", "mv conf conf2; mv keys docs/keys; echo changed >>greet.sh")},
		some(readCalls(moved(targets))),
		[]map[string]any{command("move back", "mv conf2 conf; mv docs/keys keys")},
		some(patchCalls(targets)),
		[]map[string]any{command("move again", "mv conf conf2; mv keys docs/keys; mv protected unprotected")},
		some(patchCalls(moved(targets))),
	)
}

// some are every seventh call but where there is time for all: seven is prime to
// how many names, tools, kinds and forms there are, so that each has its turn.
func some(calls []map[string]any) []map[string]any {
	if everything() {
		return calls
	}
	var chosen []map[string]any
	for i := 0; i < len(calls); i += 7 {
		chosen = append(chosen, calls[i])
	}
	return chosen
}

// lookAround prints all that a check finds, as a test that fails does.
const lookAround = `grep -rIs -e plain -e canary-of . "$GITHUB_WORKSPACE" | head -c 20000 || true`

// fillCache changes all that there is in a folder of caches.
const fillCache = `cd "$` + attempts.CacheVariable + `" && echo own >entry; echo own >new; rm -rf ./*; true`

// targets are what tools are not to read or to change.
func (s *siege) targets() []string {
	in := func(name string) string { return filepath.Join(s.world.Workspace, name) }
	all := []string{s.world.Denied, s.world.HiddenCache(), filepath.Join(s.world.Home, ".netrc"), filepath.Join(s.world.Home, ".ssh/id_rsa"), filepath.Join(s.world.Temp, "cred"), in(".git/config")}
	if s.hides() {
		for name := range hiddenFiles {
			all = append(all, in(name))
		}
	}
	slices.Sort(all)
	return all
}

// moved are names by which hidden files would be found after a move of folders.
func moved(targets []string) []string {
	var all []string
	for _, path := range targets {
		for from, to := range map[string]string{"/workspace/conf/": "/workspace/conf2/", "/workspace/keys/": "/workspace/docs/keys/"} {
			if strings.Contains(path, from) {
				all = append(all, strings.Replace(path, from, to, 1))
			}
		}
	}
	return append(all, targets...)
}

// makeWays is a script that makes other names of the targets.
func makeWays(targets []string) string {
	script := "mkdir ways; cd ways; "
	for i, path := range targets {
		script += fmt.Sprintf("ln -s %[1]s link-%[2]d; ln -s link-%[2]d chain-%[2]d; ln -s %[3]s folder-%[2]d; ln %[1]s hard-%[2]d; cp %[1]s copy-%[2]d; ", path, i, filepath.Dir(path))
	}
	return script + "ln -s / root; ln -s ../protected bare; true"
}

// ways are the names of a target.
func ways(i int, path string) []string {
	base := filepath.Base(path)
	return []string{
		path, "ways/../" + path, "." + path, "../" + filepath.Base(filepath.Dir(path)) + "/" + base, path + "/.", filepath.Dir(path) + "//" + base, filepath.Dir(path) + "/./" + base,
		fmt.Sprintf("ways/link-%d", i), fmt.Sprintf("ways/chain-%d", i), fmt.Sprintf("ways/folder-%d/%s", i, base), fmt.Sprintf("ways/hard-%d", i),
		"ways/root" + path, "/proc/self/root" + path, "/proc/self/cwd/conf/" + base, "/proc/1/root" + path, strings.ToUpper(path),
	}
}

// readCalls read each target by each of its names with each tool that reads.
func readCalls(targets []string) []map[string]any {
	var calls []map[string]any
	for i, path := range targets {
		for _, way := range append(ways(i, path), filepath.Dir(path)) {
			calls = append(calls,
				call("read_file "+way, "read_file", map[string]any{"file_path": way}),
				call("list_dir "+way, "list_dir", map[string]any{"dir_path": way}),
				call("grep_files "+way, "grep_files", map[string]any{"pattern": "canary-o[f]|the-secret-o[f]", "path": way}),
				call("view_image "+way, "view_image", map[string]any{"path": way}),
			)
		}
	}
	return append(calls,
		call("grep_files all", "grep_files", map[string]any{"pattern": "canary-o[f]|the-secret-o[f]"}),
		call("list_dir all", "list_dir", map[string]any{"dir_path": ".", "depth": 10, "limit": 1000}),
	)
}

// patchCalls change each target by each of its names, and the forms of a call
// take turns.
func patchCalls(targets []string) []map[string]any {
	var calls []map[string]any
	for _, kind := range patchKinds {
		for i, path := range targets {
			for n, way := range ways(i, path) {
				free := fmt.Sprintf("taken/%s-%d-%d", strings.ReplaceAll(kind.name, " ", "-"), i, n)
				body := strings.NewReplacer("WAY", way, "FREE", free).Replace(kind.body)
				calls = append(calls, patchCall(kind.name+" "+way, len(calls), "*** Begin Patch\n"+body+"*** End Patch\n"))
			}
		}
	}
	return append(calls, builtInCalls(targets)...)
}

// builtInCalls are calls of the tool that is built into the API.
func builtInCalls(targets []string) []map[string]any {
	var calls []map[string]any
	for i, path := range targets {
		for _, way := range ways(i, path) {
			for _, operation := range []map[string]any{
				{"type": "update_file", "path": way, "diff": "@@\n-plai\n-canary\n+changed\n"},
				{"type": "update_file", "path": way, "diff": "@@\n-plain\n+changed\n"},
				{"type": "create_file", "path": way, "diff": "+overwritten\n"},
				{"type": "delete_file", "path": way},
			} {
				id := fmt.Sprintf("built in %d %s", len(calls), way)
				calls = append(calls, map[string]any{"item": map[string]any{"type": "apply_patch_call", "id": "item of " + id, "call_id": id, "status": "completed", "operation": operation}})
			}
		}
	}
	return calls
}

// patchKinds are patches that would show the file WAY, change it, or take it
// elsewhere; what leaves it as it is comes first.
var patchKinds = []struct{ name, body string }{
	{"wrong hunk", "*** Update File: WAY\n@@\n-plai\n-canary\n+changed\n"},
	{"add below", "*** Add File: WAY/below\n+made\n"},
	{"right hunk", "*** Update File: WAY\n@@\n-plain\n+changed\n"},
	{"add", "*** Add File: WAY\n+overwritten\n"},
	{"move onto", "*** Update File: docs/more/deep.md\n*** Move to: WAY\n@@\n deep\n"},
	{"move", "*** Update File: WAY\n*** Move to: FREE\n@@\n plain\n"},
	{"bare move", "*** Update File: WAY\n*** Move to: FREE\n"},
	{"delete", "*** Delete File: WAY\n"},
	{"delete beside another", "*** Add File: FREE\n+made\n*** Delete File: WAY\n"},
}

// patchForms are the forms in which models call apply_patch.
var patchForms = []func(name, patch string) map[string]any{
	func(name, patch string) map[string]any {
		return map[string]any{"id": name, "call": "apply_patch", "input": patch}
	},
	func(name, patch string) map[string]any {
		return call(name, "apply_patch", map[string]any{"input": patch})
	},
	func(name, patch string) map[string]any { return command(name, "apply_patch <<'EOF'\n"+patch+"EOF\n") },
	func(name, patch string) map[string]any {
		return command(name, "cd docs && apply_patch <<'EOF'\n"+patch+"EOF\n")
	},
	func(name, patch string) map[string]any {
		return call(name, "shell", map[string]any{"command": []string{"apply_patch", patch}})
	},
}

func patchCall(name string, i int, patch string) map[string]any {
	return patchForms[i%len(patchForms)](name, patch)
}
