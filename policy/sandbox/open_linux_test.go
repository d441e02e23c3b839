package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/filter"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// confined opens a sandbox of a tier over a new workspace.
func confined(t testing.TB, tier string, change func(*Options)) (*Sandbox, Options) {
	t.Helper()
	base := tempDir(t)
	o := Options{
		Network: NetworkLoopback, Require: Level(tier), disabledLayers: tiers[tier],
		Folders: grants.Folders{
			Mode: grants.WorkspaceWrite, Workspace: filepath.Join(base, "workspace"), Scratch: filepath.Join(base, "scratch"), Home: os.Getenv("HOME"), Environ: os.Environ(),
		},
	}
	must.Do(t, os.Mkdir(o.Workspace, 0o755))
	if change != nil {
		change(&o)
	}
	o.Outside = heldOfGit(o.Folders)
	box, err := Open(t.Context(), o)
	if unavailable := (*UnavailableError)(nil); errors.As(err, &unavailable) {
		sandboxtest.SkipUnlessOffered(t, tier, err)
	}
	must.Do(t, err)
	t.Cleanup(func() {
		must.Is(t, nil, box.Close())
		must.Is(t, nil, RemoveScratch(o.Scratch))
	})
	return box, o
}

// eachConfined runs a test with a sandbox of each tier.
func eachConfined(t *testing.T, test func(t *testing.T, box *Sandbox, o Options)) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		test(t, box, o)
	})
}

// run runs a script and returns what it printed; it has to succeed.
func run(t testing.TB, box *Sandbox, o Options, text string) string {
	t.Helper()
	var output bytes.Buffer
	status, err := box.Run(t.Context(), bash(o, text, &output))
	if err != nil || status.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v\n%s", text, status, err, output.String())
	}
	return output.String()
}

func TestRunsOrdinaryTools(t *testing.T) {
	for _, work := range []struct {
		name   string
		needs  string
		script string
		want   string // in the output
		not    string // the tier where it does not go
	}{
		{"go", "go", `printf 'module m\n\ngo 1.24\n' >go.mod; printf 'package m\nimport "testing"\nfunc TestX(*testing.T) {}\n' >m_test.go; go test ./...`, "ok", "landlock"},
		{"go where the cache is empty", "go", `printf 'module m\n\ngo 1.24\n' >go.mod; printf 'package main\nfunc main() {}\n' >m.go; go build -o m && ./m && echo built`, "built", ""},
		{"git", "git", `git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && echo x >f && git add f && git status --short && git log --oneline && git diff --cached`, "first", ""},
		{"make in parallel", "make", `printf 'all: a b c d\na b c d:\n\t@echo $@ >$@.txt\n' >Makefile; make -s -j4 && ls *.txt | wc -l`, "4", ""},
		{"python with processes", "python3", `python3 -c 'import multiprocessing as m
with m.Pool(2) as p: print(sum(p.map(abs, [-1, -2, -3])))'`, "6", ""},
		{"node", "node", `node -e 'console.log([1, 2].map(x => x * 2).join())'`, "2,4", ""},
		{"a terminal of its own", "python3", `python3 -c 'import pty, sys; sys.exit(pty.spawn(["sh", "-c", "test -t 1 && echo terminal"]))'`, "terminal", "landlock"},
		{"sub-shells and here-documents", "bash", `bash -c 'cat <<X | tr a-z A-Z; diff <(echo 1) <(echo 1)
here
X'`, "HERE", ""},
		{"its own network", "python3", `python3 -c 'import socket, threading
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); s.accept()[0].sendall(b"hi"); print(c.recv(2))'`, "hi", "landlock"},
		{"temporary files", "mktemp", `f=$(mktemp) && echo kept >$f && cat $f`, "kept", ""},
	} {
		for tier := range tiers {
			t.Run(work.name+"/"+tier, func(t *testing.T) {
				if _, err := exec.LookPath(work.needs); err != nil {
					t.Skipf("needs %s", work.needs)
				}
				if shared, err := os.ReadDir("/dev/shm"); tier == "landlock" && strings.Contains(work.script, "multiprocessing") && (err != nil || len(shared) > 0) {
					t.Skip("others use /dev/shm, so that this tier does not grant it; docs/security.md says why")
				}
				if work.not == tier {
					t.Skip("does not go in this tier; docs/security.md says why")
				}
				box, o := confined(t, tier, nil)
				must.Contain(t, run(t, box, o, work.script), work.want)
			})
		}
	}
}

func TestCommandsShareNetworkAndFiles(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	box, o := confined(t, "namespaces", nil)
	read, write := io.Pipe()
	server := must.Get(box.Start(bash(o, `exec python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 8080)); print("up", flush=True); s.accept()[0].sendall(b"served")'`, write)))(t)
	must.Same(t, "up\n", must.Get(bufio.NewReader(read).ReadString('\n'))(t))
	must.Contain(t, run(t, box, o, `python3 -c 'import socket
print(socket.create_connection(("127.0.0.1", 8080)).recv(6))'; echo left >/tmp/left; echo mine >/dev/shm/mine`), "served")
	must.Is(t, nil, must.Err(server.Wait()))
	must.Same(t, "left\nleft\nmine\n/tmp\n", run(t, box, o, "cat /tmp/left $TMPDIR/left /dev/shm/mine; echo $TMPDIR"))
	must.Same(t, "left\n", string(must.Get(os.ReadFile(filepath.Join(o.Scratch, "tmp", "left")))(t)), "outside")
}

func TestHomeChangesStayInSandbox(t *testing.T) {
	home := t.TempDir()
	put(t, filepath.Join(home, ".cache/tool/entry"), "outside", 0o644)
	box, o := confined(t, "namespaces", func(o *Options) { o.Home = home })
	c := bash(o, `cat ~/.cache/tool/entry; echo changed >~/.cache/tool/entry; echo new >~/new; cat ~/.cache/tool/entry ~/new`, nil)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	var output bytes.Buffer
	c.Output = &output
	must.Same(t, 0, must.Get(box.Run(t.Context(), c))(t).ExitCode)
	must.Same(t, "outsidechanged\nnew\n", output.String())
	must.Same(t, "outside", string(must.Get(os.ReadFile(filepath.Join(home, ".cache/tool/entry")))(t)), "outside")
}

// What lies over a file of credentials takes no writing, and nothing of it is the
// machine's.
func TestCredentialFilesRefuseWriting(t *testing.T) {
	for _, write := range []struct{ needs, script string }{
		{"sh", "echo x >>~/.npmrc"}, {"chmod", "chmod 600 ~/.npmrc"}, {"touch", "touch ~/.npmrc"}, {"npm", "npm config set fund false"},
	} {
		for _, tier := range namespacedTiers {
			t.Run(tier+"/"+write.script, func(t *testing.T) {
				if _, err := exec.LookPath(write.needs); err != nil {
					t.Skipf("needs %s", write.needs)
				}
				home := t.TempDir()
				put(t, filepath.Join(home, ".npmrc"), secret, 0o640)
				paths := []string{filepath.Join(home, ".npmrc"), os.DevNull}
				before := attributes(t, paths)
				box, o := confined(t, tier, func(o *Options) { o.Home, o.Environ = home, []string{"HOME=" + home} })
				clues := WatchRefusals(io.Discard)
				c := bash(o, write.script, clues)
				c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
				status, err := box.Run(t.Context(), c)
				if note := box.Explain(clues, status); err != nil || status.ExitCode == 0 || !strings.Contains(note, "files of credentials are empty") {
					t.Errorf("got %+v, %v, %q", status, err, note)
				}
				must.Same(t, before, attributes(t, paths))
			})
		}
	}
}

// attributes are what of files a change of attributes changes.
func attributes(t *testing.T, paths []string) (all []unix.Timespec) {
	t.Helper()
	for _, path := range paths {
		var now unix.Stat_t
		must.Do(t, unix.Stat(path, &now))
		all = append(all, now.Ctim)
	}
	return all
}

func TestReportsStatusOfConfinedCommands(t *testing.T) {
	for _, test := range []struct {
		script string
		want   Status
	}{
		{"(setsid sleep 3600 &) ; true", Status{}},
		{"kill -TERM -1; kill -KILL 1; kill -TERM 1; kill -SEGV 1; exit 3", Status{ExitCode: 3}},
	} {
		for _, tier := range namespacedTiers {
			t.Run(tier+"/"+test.script, func(t *testing.T) {
				box, o := confined(t, tier, nil)
				c := bash(o, test.script, nil)
				must.Same(t, test.want, must.Get(box.Run(t.Context(), c))(t))
				must.Same(t, "on\n", run(t, box, o, "echo on"), "afterwards")
			})
		}
	}
}

func TestCloseEndsAllProcesses(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		up := make(chan struct{})
		// The pipe is held by one that left its group, too.
		must.Get(box.Start(bash(o, "mkfifo p; setsid sh -c 'exec 3<>p; echo up; exec sleep 3600' & wait", cancelling(func() { close(up) }))))(t)
		<-up
		must.Is(t, nil, box.Close())
		f, err := os.OpenFile(filepath.Join(o.Workspace, "p"), os.O_WRONLY|0x800, 0) // O_NONBLOCK: fails when nobody reads
		if err == nil {
			f.Close()
			t.Error("a process is left")
		}
		must.Is(t, errClosed, must.Err(box.Start(bash(o, "true", nil))), "after Close")
	})
}

func TestLimitsProcesses(t *testing.T) {
	box, o := confined(t, "namespaces", func(o *Options) { o.maxProcesses = 400 }) // the kernel takes no fewer than 301
	got := run(t, box, o, `i=0; while test $i -lt 500; do (sleep 3600 & ) 2>/dev/null || { echo refused; break; }; i=$((i+1)); done; true`)
	if !strings.Contains(got, "refused") && !strings.Contains(got, "fork") && !strings.Contains(got, "Resource") {
		t.Errorf("500 processes were started: %q", got)
	}
}

func TestOpenRefusesUnmetRequirements(t *testing.T) {
	o := newOptions(t)
	for _, test := range []struct {
		name    string
		change  func(*Options)
		unready bool
	}{
		{"nothing is left", func(o *Options) { o.disabledLayers = []string{layerNamespaces, layerLandlock} }, true},
		{"more than there is", func(o *Options) { o.disabledLayers, o.Require = []string{layerLandlock}, LevelFull }, true},
		{"something of nothing", func(o *Options) { o.Mode, o.Require = grants.DangerFullAccess, LevelLandlock }, true},
		{"a network that is none", func(o *Options) { o.Network = "x" }, false},
		{"a level that is none", func(o *Options) { o.Require = "x" }, false},
		{"a relative path", func(o *Options) { o.Writable = []string{"x"} }, false},
		{"all of the file system", func(o *Options) { o.Writable = []string{"/"} }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := o
			test.change(&o)
			box, err := Open(t.Context(), o)
			if err == nil {
				_ = box.Close()
				t.Fatal("it opened")
			}
			var unavailable *UnavailableError
			must.Same(t, test.unready, errors.As(err, &unavailable), err)
		})
	}
}

func TestReadOnlyModeWritesNothing(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, func(o *Options) {
			o.Mode = grants.ReadOnly
			put(t, filepath.Join(o.Workspace, "f"), "content\n", 0o644)
		})
		if got := run(t, box, o, "cat f; echo x >f || echo refused; echo y >$TMPDIR/y && echo written"); !strings.HasPrefix(got, "content\n") || !strings.HasSuffix(got, "refused\nwritten\n") {
			t.Errorf("got %q", got)
		}
	})
}

func TestLaterSandboxSeesHomeChanges(t *testing.T) {
	home := t.TempDir()
	put(t, filepath.Join(home, "before"), "before\n", 0o644)
	scratch := filepath.Join(home, ".local/state:1/first") // the run directory may lie in the user's folder
	first, o := confined(t, "namespaces", func(o *Options) { o.Home, o.Scratch = home, scratch })
	run(t, first, o, "cd "+home+" && cat before && echo installed >tool && rm before")
	must.Do(t, first.Close())
	for range 2 { // what the later ones change is their own
		later, o := confined(t, "namespaces", func(o *Options) { o.Home, o.EarlierScratch = home, []string{scratch} })
		must.Same(t, "installed\ntool\n", run(t, later, o, "cd "+home+" && cat tool && ls && echo changed >tool"))
	}
}

func TestHidesCredentialsMovedByVariables(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		dir := place(t)
		var files []string
		for _, file := range []string{
			"config/git/credentials", "config/gh/hosts.yml", "data/keyrings/login", "cargo/credentials.toml", "gradle/gradle.properties", "composer/auth.json",
			"pip.conf", "kube/one", "kube/two", "runner/.credentials_migrated", "runner/.runner_migrated",
		} {
			put(t, filepath.Join(dir, file), "secret\n", 0o644)
			files = append(files, filepath.Join(dir, file))
		}
		for _, file := range []string{"config/git/config", "gitconfig"} {
			put(t, filepath.Join(dir, file), "[test]\n\tmark = read\n[http]\n\textraheader = secret\n", 0o644)
			files = append(files, filepath.Join(dir, file))
		}
		box, o := confined(t, tier, func(o *Options) {
			o.Environ = []string{
				"XDG_CONFIG_HOME=" + dir + "/config", "XDG_DATA_HOME=" + dir + "/data", "CARGO_HOME=" + dir + "/cargo", "GRADLE_USER_HOME=" + dir + "/gradle",
				"COMPOSER_HOME=" + dir + "/composer", "PIP_CONFIG_FILE=" + dir + "/pip.conf", "KUBECONFIG=" + dir + "/kube/one:" + dir + "/kube/two",
				"GIT_CONFIG_GLOBAL=" + dir + "/gitconfig", "RUNNER_TEMP=" + dir + "/runner/_work/_temp",
			}
		})
		must.Lack(t, run(t, box, o, "cat "+strings.Join(files, " ")+" 2>/dev/null || true"), "secret")
		must.Same(t, "read\n", run(t, box, o, "export XDG_CONFIG_HOME="+dir+"/config; git config --get test.mark"), "git reads")
	})
}

func TestSkipsVanishedHiddenPaths(t *testing.T) {
	confined(t, "namespaces", nil) // or skip
	for _, file := range []bool{true, false} {
		gone := stage.Mount{Kind: stage.Hidden, Path: "/usr/a socket that was closed meanwhile", File: file}
		nothing := filepath.Join(t.TempDir(), "nothing")
		put(t, nothing, "", 0o644)
		programs := must.Get(filter.Programs(filter.Options{Namespaced: true, Connect: true}))(t)
		s := new(Sandbox)
		if _, err := s.becomeSupervisor(stage.Spec{Namespaced: true, OwnNetwork: true, EmptyFile: nothing, Mounts: []stage.Mount{gone}, Filters: programs}, StartEarly(NetworkLoopback), nil); err != nil {
			t.Errorf("file %t: %v", file, err)
			continue
		}
		must.Is(t, nil, s.Close())
	}
}

func TestOpensAtGivenLevel(t *testing.T) {
	for _, level := range []Level{LevelFull, LevelNamespaces, LevelLandlock} {
		t.Run(string(level), func(t *testing.T) {
			box, _ := confined(t, string(level), func(o *Options) { o.At, o.Require, o.disabledLayers = level, "", nil })
			must.Same(t, level, box.Level(), "it reaches")
		})
	}
}

func TestRefusesLessThanGivenLevel(t *testing.T) {
	o := newOptions(t)
	o.At, o.disabledLayers = LevelFull, []string{layerNamespaces} // as if the kernel refused them this time
	box, err := Open(t.Context(), o)
	if err == nil {
		_ = box.Close()
	}
	if unavailable := (*UnavailableError)(nil); !errors.As(err, &unavailable) || unavailable.Asked != LevelFull {
		t.Errorf("got %v", err)
	}
}

func TestOpenOnFirstUseRetries(t *testing.T) {
	o := newOptions(t)
	o.Workspace = filepath.Join(o.Workspace, "not there yet")
	s := OpenOnFirstUse(t.Context(), o)
	defer s.Close()
	command := Command{Argv: []string{"/bin/true"}, Dir: "/"}
	must.Is(t, ErrNotStarted, must.Err(s.Run(t.Context(), command)), "without its workspace")
	must.Do(t, os.Mkdir(o.Workspace, 0o755))
	_, err := s.Run(t.Context(), command)
	if unavailable := (*UnavailableError)(nil); errors.As(err, &unavailable) {
		t.Skip(err)
	}
	must.Is(t, nil, err, "with it")
}

func TestOpenOnFirstUseLeaksNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := OpenOnFirstUse(t.Context(), newOptions(t))
	if _, err := s.Run(t.Context(), Command{Argv: []string{"/bin/true"}, Dir: "/"}); err != nil {
		t.Skip(err)
	}
	must.Do(t, s.Close())
	goleak.VerifyNone(t, before) // it waits for those that are about to end
}

func TestOpenOnFirstUseDefersErrors(t *testing.T) {
	unavailable := newOptions(t)
	unavailable.Scratch = filepath.Join(unavailable.Scratch, "missing", "\x00")
	s := OpenOnFirstUse(t.Context(), unavailable)
	must.Is(t, ErrNotStarted, must.Err(s.Start(Command{Argv: []string{"true"}, Dir: "/", Env: os.Environ()})), "a sandbox that cannot be opened starts a command")
	must.Is(t, nil, s.Close(), "Close")
	closed := OpenOnFirstUse(t.Context(), unavailable)
	must.Is(t, nil, closed.Close(), "Close of what was never opened")
}

// Set-group-ID on folders is git's way to share a repository.
func TestOnlyFoldersTakeSetidBits(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		run(t, box, o, `
mkdir sub plain && chmod g+s plain && install -d -m 3775 made && mkdir -m 2755 new && chmod 1777 sub
(cd sub && mkdir in && chmod 2700 in && chmod g+s .)
ln -s plain link && chmod 4755 "$PWD/link" && chmod g+s "$PWD/made" /proc/self/cwd/new
touch file && chmod 1755 file
! chmod u+s file && ! chmod 2755 file && ! chmod g+s absent && ! install -m 4755 file other`)
		for name, want := range map[string]os.FileMode{
			"plain": 0o755 | os.ModeSetuid | os.ModeSetgid, "made": 0o775 | os.ModeSetgid | os.ModeSticky, "new": 0o755 | os.ModeSetgid, "sub": 0o777 | os.ModeSetgid | os.ModeSticky,
			"sub/in": 0o700 | os.ModeSetgid, "file": 0o755 | os.ModeSticky,
		} {
			info, err := os.Stat(filepath.Join(o.Workspace, name))
			if err != nil || info.Mode()&^os.ModeDir != want {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	})
}

// Whoever uses up all processes does not end by it the process that is asked.
func TestSetgidNeedsNoFreeProcess(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	box, o := confined(t, "full", func(o *Options) { o.maxProcesses = 400 })
	run(t, box, o, `mkdir folder && python3 -ISc '
import os, signal
children = []
try:
    while len(children) < 1000:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
except OSError:
    for _ in range(10):
        os.chmod("folder", 0o2755)
        os.chmod("folder", 0o755)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)'`)
	must.Same(t, "serves\n", run(t, box, o, "echo serves"))
}

// tempDir is t.TempDir for what overlays are mounted from: they leave folders that their
// owner may not enter.
func tempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { _ = RemoveScratch(dir) })
	return dir
}
