package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// The test binary is three programs more: the one that opens a sandbox, so that
// this can be done as another user, and those that run in it.
const (
	outerVariable   = "SANDBOX_TEST_OUTER"
	attemptVariable = "SANDBOX_TEST_ATTEMPT"
	worldVariable   = "SANDBOX_TEST_WORLD"
)

// nobody is a user who owns nothing else.
const nobody = 65534

// tiers are the ways to confine, by what is left out.
var tiers = map[string][]string{
	"full":       nil,
	"landlock":   {layerNamespaces},
	"namespaces": {layerLandlock},
}

// verdict is how an attempt ended.
type verdict struct {
	Name    string
	Escaped bool
	Why     string
}

const (
	exitEscaped  = 10
	exitHeld     = 11
	exitMistaken = 12
)

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
	var w world
	must(json.Unmarshal([]byte(os.Getenv(worldVariable)), &w))
	all := slices.Concat(attempts(), proxyAttempts())
	i := slices.IndexFunc(all, func(a attempt) bool { return a.name == os.Getenv(attemptVariable) })
	err := all[i].do(w)
	switch {
	case w.mistaken():
		fmt.Println("the victim's number is one of its own")
		os.Exit(exitMistaken)
	case err != nil:
		fmt.Println(err)
		os.Exit(exitHeld)
	}
	os.Exit(exitEscaped)
}

// mistaken is true where the victim's number is that of a thread of the attempt
// or of its supervisor. In a namespace of processes numbers begin at 1 again, so
// that what was attacked is not the victim.
func (w world) mistaken() bool {
	for _, process := range []int{os.Getpid(), os.Getppid()} {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", process, w.Victim))
		if err == nil && process != w.Victim {
			return true
		}
	}
	return false
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// outer is what the program that opens the sandbox is told.
type outer struct {
	World   world
	Options Options
	Without []string
	Bare    bool // no sandbox at all
	Proxied bool // a proxy on the loopback
	Listen  bool
	Program string // that runs the attempts
}

// runOuter opens a sandbox and tries to break out of it, once by each attempt.
func runOuter() {
	var o outer
	must(json.Unmarshal([]byte(os.Getenv(outerVariable)), &o))
	o.World.Victim, o.World.Bare = os.Getpid(), o.Bare
	stop := o.World.inhabit()
	defer stop()
	o.Options.without = o.Without
	o.Options.Environ = os.Environ()
	all := attempts()
	if o.Proxied {
		all = append(all, proxyAttempts()...)
		o.Options.Network, o.Options.Serve = NetworkProxied, o.World.serveProxy
	}
	box := o.open()
	fmt.Fprintln(os.Stderr, box.Level())
	out := json.NewEncoder(os.Stdout)
	for _, a := range all {
		if o.Bare && a.unproven {
			continue
		}
		v, mistaken := try(box, o, a)
		for range 5 {
			if !mistaken {
				break
			}
			must(box.Close())
			box = o.open()
			v, mistaken = try(box, o, a)
		}
		must(out.Encode(v))
	}
	must(box.Close())
}

func (o outer) open() *Sandbox {
	if o.Bare {
		return new(Sandbox)
	}
	box, err := Open(context.Background(), o.Options)
	must(err)
	return box
}

// try runs one attempt. A mistaken one has hit itself: it says nothing.
func try(box *Sandbox, o outer, a attempt) (v verdict, mistaken bool) {
	raw, err := json.Marshal(o.World)
	must(err)
	var output bytes.Buffer
	status, err := box.Run(context.Background(), Command{
		Argv: []string{o.Program}, Dir: o.World.Workspace, Output: &output,
		Env: []string{attemptVariable + "=" + a.name, worldVariable + "=" + string(raw), "HOME=" + o.World.Home},
	})
	must(err)
	switch {
	case status.ExitCode == exitEscaped:
		return verdict{a.name, true, "it succeeded " + output.String()}, false
	case status.ExitCode == exitHeld || status.Signal == "bad system call":
		return verdict{a.name, false, strings.TrimSpace(output.String()) + status.Signal}, false
	}
	return verdict{a.name, true, fmt.Sprintf("the attempt itself failed: %+v %s", status, output.String())}, status.ExitCode == exitMistaken
}

// inhabit makes what lives outside: listeners, shared memory.
func (w *world) inhabit() (stop func()) {
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	w.TCP = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(err)
	w.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	named, err := net.Listen("unix", w.Socket)
	must(err)
	datagrams, err := net.ListenPacket("unixgram", w.Datagram)
	must(err)
	abstract, err := net.Listen("unix", "@"+w.Abstract)
	must(err)
	var ends sync.WaitGroup
	ends.Go(func() { echo(udp) })
	w.SharedKey = os.Getpid()
	id, err := unix.SysvShmGet(w.SharedKey, 4096, unix.IPC_CREAT|0o600)
	must(err)
	must(os.WriteFile(w.Shared, []byte(w.Secret), 0o600))
	return func() {
		for _, l := range []interface{ Close() error }{tcp, udp, named, datagrams, abstract} {
			_ = l.Close()
		}
		ends.Wait()
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		_ = os.Remove(w.Shared)
	}
}

func echo(c net.PacketConn) {
	b := make([]byte, 16)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(b[:n], from)
	}
}

// programFolder is where the program was built, empty when it was not.
var programFolder string

// program is this test binary built without cgo, as the product is. A build
// with cgo does the steps inside another way.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sandbox-program-")
	if err != nil {
		return "", err
	}
	programFolder = dir
	path := filepath.Join(dir, "sandbox.test")
	build := exec.Command("go", "test", "-c", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// place is a folder that commands see as it is: not below /tmp.
func place(t *testing.T) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	work, _ := os.Getwd()
	for _, parent := range []string{"/srv", "/var/lib", home, work} {
		dir, err := os.MkdirTemp(parent, "agent-ci-sandbox-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := RemoveScratch(dir); err != nil {
				t.Error(err)
			}
		})
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Skip("needs a folder to write to that is not below /tmp")
	return ""
}

const secret = "the-secret-of-the-outside"

// newWorld makes what is attacked, as files of user.
func newWorld(t *testing.T, tier string, user int) outer {
	t.Helper()
	base := place(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	gitConfig := "[core]\n\trepositoryformatversion = 0\n"
	if tier != "landlock" { // which refuses to start then
		gitConfig += "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic " + secret + "\n"
	}
	files := map[string]string{
		"outside/secret.txt": "x", "outside/truncate": "x", "outside/delete": "x", "outside/move": "x", "outside/kube/config": secret,
		"home/.ssh/id_rsa": secret, "home/.aws/credentials": secret, "home/.netrc": secret, "home/.config/gh/hosts.yml": secret,
		"denied/file": secret, "temp/cred": secret, "workspace/mnt/.keep": "",
		"workspace/conf/deep/cred": secret, "extra/a/cred": secret, "workspace/.git/config": gitConfig, "workspace/.git/HEAD": "ref: refs/heads/main\n", "workspace/.git/description": "x", "workspace/.git/hooks/kept": "x",
	}
	for name, content := range files {
		put(t, filepath.Join(base, name), content, 0o644)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(base, "bin/attempt"), string(binary), 0o755)
	if err := os.Symlink(filepath.Join(base, "outside/kube"), filepath.Join(base, "home/.kube")); err != nil {
		t.Fatal(err)
	}
	give(t, base, user)
	in := func(name string) string { return filepath.Join(base, name) }
	w := world{
		Workspace: in("workspace"), Outside: in("outside"), Home: in("home"), Denied: in("denied/file"), Extra: in("extra"), Temp: in("temp"),
		Socket: in("outside/host.sock"), Datagram: in("outside/datagram.sock"), Abstract: filepath.Base(base),
		Shared: filepath.Join("/dev/shm", filepath.Base(base)), Secret: secret,
	}
	denied := []string{w.Denied}
	if tier != "landlock" { // which refuses to start then
		denied = append(denied, w.workspace("conf/deep/cred"), filepath.Join(w.Extra, "a/cred"))
	}
	return outer{World: w, Program: in("bin/attempt"), Without: tiers[tier], Options: Options{
		Mode: WorkspaceWrite, Network: NetworkLoopback, Workspace: w.Workspace, Writable: []string{w.Extra}, Home: w.Home, Scratch: in("scratch"), DenyRead: denied,
	}}
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// give makes all below base the user's.
func give(t *testing.T, base string, user int) {
	t.Helper()
	if user == os.Getuid() {
		return
	}
	err := filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, user, user)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// attack runs all attempts as user and returns how they ended.
func attack(t *testing.T, o outer, user int) (level string, all []verdict) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(o.Program)
	cmd.Dir = "/"
	cmd.Env = []string{outerVariable + "=" + string(raw), "TOKEN_OF_AGENT_CI=" + secret, "HOME=" + o.World.Home, "PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + o.World.Temp}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if user != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	level, _, _ = strings.Cut(stderr.String(), "\n")
	for d := json.NewDecoder(&stdout); d.More(); {
		var v verdict
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return level, all
}

func users(t *testing.T) map[string]int {
	if os.Getuid() == 0 && os.Lchown(t.TempDir(), nobody, nobody) == nil { // a namespace of users may have this one alone
		return map[string]int{"root": 0, "nobody": nobody}
	}
	return map[string]int{"user": os.Getuid()}
}

// requireTier skips where the kernel does not give what the tier is made of.
func requireTier(t *testing.T, tier string) {
	t.Helper()
	base := t.TempDir()
	box, err := Open(t.Context(), Options{
		Mode: WorkspaceWrite, Network: NetworkNone, Workspace: base, Scratch: t.TempDir(), Require: Level(tier), without: tiers[tier],
	})
	if err != nil {
		sandboxtest.SkipUnlessOffered(t, tier, err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}

func TestNothingGetsOut(t *testing.T) {
	if n := len(attempts()); n < 50 {
		t.Fatalf("there are %d attempts", n)
	}
	for tier := range tiers {
		for name, user := range users(t) {
			t.Run(tier+"/"+name, func(t *testing.T) {
				requireTier(t, tier)
				level, verdicts := attack(t, newWorld(t, tier, user), user)
				if level != tier {
					t.Errorf("the level is %s", level)
				}
				for i, v := range verdicts {
					why, open := attempts()[i].open[tier]
					open = open && (user == 0 || !attempts()[i].roots)
					switch {
					case v.Escaped && !open:
						t.Errorf("%s: %s", v.Name, v.Why)
					case !v.Escaped && open && user != 0: // against user 0's processes it takes capabilities
						t.Errorf("%s is held here (%s); it is listed as open: %s", v.Name, v.Why, why)
					case testing.Verbose():
						t.Logf("%-50s %s", v.Name, v.Why)
					}
				}
			})
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
func TestAttemptsSucceedWithoutASandbox(t *testing.T) {
	if os.Getuid() != 0 || !hasAllRights() {
		t.Skip("needs user 0 with all of its rights")
	}
	requireTier(t, "full")
	o := newWorld(t, "none", 0)
	o.Bare = true
	_, verdicts := attack(t, o, 0)
	for _, v := range verdicts {
		if !v.Escaped || strings.Contains(v.Why, "failed") {
			t.Errorf("%s: %s", v.Name, v.Why)
		}
	}
}
