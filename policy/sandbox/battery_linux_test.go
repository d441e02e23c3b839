package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
)

// The test binary is three programs more: the one that opens a sandbox, so that
// this can be done as another user, and those that run in it.
const (
	outerVariable   = "SANDBOX_TEST_OUTER"
	attemptVariable = "SANDBOX_TEST_ATTEMPT"
	worldVariable   = "SANDBOX_TEST_WORLD"
)

// tiers are the ways to confine, by what is left out.
var tiers = map[string][]string{
	"full":       nil,
	"landlock":   {layerNamespaces},
	"namespaces": {layerLandlock},
}

var allTiers, namespacedTiers = []string{"full", "landlock", "namespaces"}, []string{"full", "namespaces"}

// inTiers runs a test once for each tier.
func inTiers(t *testing.T, tiers []string, test func(t *testing.T, tier string)) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) { test(t, tier) })
	}
}

// becomeProgram makes this process one of the other programs, if it is meant
// to be one.
func becomeProgram() {
	switch {
	case os.Getenv(attemptVariable) != "":
		runAttempt()
	case os.Getenv(fetchVariable) != "":
		runFetch()
	case os.Getenv(faultVariable) != "":
		makeUpFaults()
	case os.Getenv(outerVariable) != "":
		runOuter()
		os.Exit(0)
	}
}

func removeProgram() {
	if programFolder != "" {
		_ = os.RemoveAll(programFolder)
	}
}

func runAttempt() {
	var w attempts.World
	orPanic(json.Unmarshal([]byte(os.Getenv(worldVariable)), &w))
	w.Supervisor = os.Getppid()
	all := slices.Concat(attempts.All(), proxyAttempts())
	i := slices.IndexFunc(all, func(a attempts.Attempt) bool { return a.Name == os.Getenv(attemptVariable) })
	all[i].Make(w)
}

func orPanic(err error) {
	if err != nil {
		panic(err)
	}
}

// outer is what the program that opens the sandbox is told.
type outer struct {
	World   attempts.World
	Options Options
	Without []string
	Proxied bool // a proxy on the loopback
	// Internet is the address of the proxy by which the world's Host is reached, and
	// Vouching the file of who vouches for it; empty where there is no such host.
	Internet, Vouching string
	Served             bool   // the attempts on the host of a secret alone
	Serves             bool   // it is the sandbox of a service: of another user, in a workspace that is lent
	Program            string // that runs the attempts
}

// attempts are those that are made in the sandbox.
func (o outer) attempts() []attempts.Attempt {
	if o.Proxied {
		return append(attempts.Proxied(), proxyAttempts()...)
	}
	return slices.DeleteFunc(attempts.On(o.World), func(a attempts.Attempt) bool { return o.Served && !a.Served })
}

// runOuter opens a sandbox and tries to break out of it, once by each attempt.
func runOuter() {
	var o outer
	orPanic(json.Unmarshal([]byte(os.Getenv(outerVariable)), &o))
	orPanic(o.World.SetVictim(os.Getpid()))
	stop, err := o.World.Inhabit()
	orPanic(err)
	defer stop()
	o.Options.disabledLayers = o.Without
	o.Options.Environ = os.Environ()
	o.Options.Outside = heldOfGit(o.Options.Folders)
	if o.World.Host != "" && !o.World.Bare {
		o.Options.Network, o.Options.Serve = NetworkProxied, o.serveHost()
	}
	if o.Proxied {
		o.Options.Network, o.Options.Serve = NetworkProxied, serveProxy(o.World)
	}
	box := o.open()
	fmt.Fprintln(os.Stderr, box.Level())
	out := json.NewEncoder(os.Stdout)
	for _, a := range o.attempts() {
		v, mistaken := try(box, o, a)
		for range 5 {
			if !mistaken {
				break
			}
			orPanic(box.Close())
			box = o.open()
			v, mistaken = try(box, o, a)
		}
		orPanic(out.Encode(v))
	}
	orPanic(box.Close())
}

func (o outer) open() *Sandbox {
	if o.World.Bare {
		return new(Sandbox)
	}
	if o.Serves {
		o.Options = o.serving()
	}
	box, err := Open(context.Background(), o.Options)
	orPanic(err)
	return box
}

// try runs one attempt. A mistaken one has hit itself: it says nothing.
func try(box *Sandbox, o outer, a attempts.Attempt) (v attempts.Verdict, mistaken bool) {
	raw, err := json.Marshal(o.World)
	orPanic(err)
	var output bytes.Buffer
	status, err := box.Run(context.Background(), Command{
		Argv: []string{o.Program}, Dir: o.World.Workspace, Output: &output,
		Env: []string{attemptVariable + "=" + a.Name, worldVariable + "=" + string(raw), "HOME=" + o.World.Home, hostVariable + "=" + hostPlaceholder, attempts.GitPlaceholder + "=" + gitPlaceholder},
	})
	orPanic(err)
	return attempts.Judge(a.Name, status.ExitCode, status.Signal, output.String())
}

// programFolder is where the program was built, empty when it was not.
var programFolder string

// program is this test binary built without cgo, as the product is. A build
// with cgo does the steps inside another way.
var program = sync.OnceValues(func() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		return os.Executable()
	}
	dir, err := os.MkdirTemp("", "sandbox-program-")
	if err != nil {
		return "", err
	}
	programFolder = dir
	path := filepath.Join(dir, "sandbox.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// place is a folder that commands see as it is: not below /tmp.
func place(t *testing.T) string {
	t.Helper()
	return sandboxtest.Place(t, RemoveScratch)
}

const secret = attempts.Secret

// newWorld makes what is attacked, as files of user.
func newWorld(t *testing.T, tier string, user int) outer {
	t.Helper()
	base := place(t)
	path := must.Get(program())(t)
	gitConfig := "[core]\n\trepositoryformatversion = 0\n"
	if tier != "landlock" { // which refuses to start then
		gitConfig += "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic " + secret + "\n"
	}
	w := must.Get(attempts.NewWorld(base))(t)
	for name, content := range map[string]string{"config": gitConfig, "HEAD": "ref: refs/heads/main\n", "description": "x", "hooks/kept": "x"} {
		put(t, filepath.Join(w.Workspace, ".git", name), content, 0o644)
	}
	binary := must.Get(os.ReadFile(path))(t)
	put(t, filepath.Join(base, "bin/attempt"), string(binary), 0o755)
	sandboxtest.Give(t, base, user)
	in := func(name string) string { return filepath.Join(base, name) }
	denied := []string{w.Denied, w.HiddenCache()}
	if tier != "landlock" { // which refuses to start then
		denied = append(denied, w.Hidden()...)
	}
	return outer{World: w, Program: in("bin/attempt"), Without: tiers[tier], Options: Options{
		Network: NetworkLoopback,
		Folders: grants.Folders{
			Mode: grants.WorkspaceWrite, Workspace: w.Workspace, Writable: []string{w.Extra}, Home: w.Home, Scratch: in("scratch"), DenyRead: denied,
			Commands: []string{attempts.CacheVariable + "=" + w.Cache},
		},
	}}
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(content), mode))
}

// attack runs all attempts as user and returns how they ended.
func attack(t *testing.T, o outer, user int) (level string, all []attempts.Verdict) {
	t.Helper()
	raw := must.Get(json.Marshal(o))(t)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(o.Program)
	cmd.Dir = "/"
	cmd.Env = []string{outerVariable + "=" + string(raw), "TOKEN_OF_AGENT_CI=" + secret, "HOME=" + o.World.Home, "PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + o.World.Temp}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if user != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	must.Do(t, cmd.Run(), stderr.String())
	level, _, _ = strings.Cut(stderr.String(), "\n")
	for d := json.NewDecoder(&stdout); d.More(); {
		var v attempts.Verdict
		must.Do(t, d.Decode(&v))
		all = append(all, v)
	}
	return level, all
}

// requireTier skips where the kernel does not give what the tier is made of.
func requireTier(t *testing.T, tier string) {
	t.Helper()
	o := newOptions(t)
	o.Require, o.disabledLayers = Level(tier), tiers[tier]
	box, err := Open(t.Context(), o)
	if err != nil {
		sandboxtest.SkipUnlessOffered(t, tier, err)
	}
	must.Is(t, nil, box.Close())
}

func TestNothingGetsOut(t *testing.T) {
	if n := len(attempts.All()); n < 50 {
		t.Fatalf("there are %d attempts", n)
	}
	for tier := range tiers {
		for name, user := range sandboxtest.Users(t) {
			t.Run(tier+"/"+name, func(t *testing.T) {
				requireTier(t, tier)
				noneEscapes(t, newWorld(t, tier, user), tier, user)
			})
			if tier != "landlock" {
				t.Run(tier+"/"+name+"/overlay", func(t *testing.T) {
					requireTier(t, tier)
					o := newWorld(t, tier, user)
					o.inOverlay(t, user)
					noneEscapes(t, o, tier, user)
				})
			}
		}
	}
}

// inOverlay has commands work in an overlay of the workspace.
func (o *outer) inOverlay(t *testing.T, user int) {
	t.Helper()
	base := filepath.Dir(o.World.Workspace)
	o.World.OverlayFolder = filepath.Join(base, "changes")
	put(t, grants.Upper(o.World.OverlayFolder)+"/made", "", 0o644)
	put(t, filepath.Join(o.World.OverlayFolder, "work/.keep"), "", 0o644)
	sandboxtest.Give(t, base, user)
	if !o.World.Bare {
		o.Options.Overlay, o.Options.DenyRead = o.World.OverlayFolder, append(o.Options.DenyRead, o.World.OverlayFolder)
	}
}

// noneEscapes makes all attempts, and fails if one succeeds that is not listed as open in the tier.
func noneEscapes(t *testing.T, o outer, tier string, user int) {
	t.Helper()
	level, verdicts := attack(t, o, user)
	all := o.attempts()
	if level != tier || len(verdicts) != len(all) || len(all) < fewestAttempts {
		t.Fatalf("the level is %s; %d of %d attempts were made", level, len(verdicts), len(all))
	}
	for i, v := range verdicts {
		why, open := all[i].Open[tier]
		open = open && (user == 0 || !all[i].Roots)
		switch {
		case v.Escaped && !open || v.Name != all[i].Name:
			t.Errorf("%s: %s", v.Name, v.Why)
		case !v.Escaped && open && user != 0: // against user 0's processes it takes capabilities
			t.Errorf("%s is held here (%s); it is listed as open: %s", v.Name, v.Why, why)
		case testing.Verbose():
			t.Logf("%-50s %s", v.Name, v.Why)
		}
	}
}

// hasAllRights says whether no capability was taken from this process, and no
// system call.
func hasAllRights() bool {
	raw, err := os.ReadFile("/proc/self/status")
	last, lastErr := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	var n int
	_, scanErr := fmt.Sscan(string(last), &n)
	if err != nil || lastErr != nil || scanErr != nil {
		return false
	}
	status := string(raw)
	return strings.Contains(status, fmt.Sprintf("\nCapEff:\t%016x\n", uint64(1)<<(n+1)-1)) && strings.Contains(status, "\nSeccomp:\t0\n")
}

// Without a sandbox the attempts succeed: they try what they say.
func TestAttemptsSucceedWithoutSandbox(t *testing.T) {
	if os.Getuid() != 0 || !hasAllRights() {
		t.Skip("needs user 0 with all of its rights")
	}
	requireTier(t, "full")
	o := newWorld(t, "none", 0)
	o.World.Bare = true
	o.hasHost(t)
	o.inOverlay(t, 0)
	allEscape(t, o, 0)
}

func allEscape(t *testing.T, o outer, user int) {
	t.Helper()
	_, verdicts := attack(t, o, user)
	for _, v := range verdicts {
		if !v.Escaped || strings.Contains(v.Why, "failed") {
			t.Errorf("%s: %s", v.Name, v.Why)
		}
	}
	if len(verdicts) < fewestAttempts {
		t.Errorf("%d attempts were made", len(verdicts))
	}
}

// fewestAttempts is less than any test makes.
const fewestAttempts = 10
