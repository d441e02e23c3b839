//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		hold()
	}
	heedInterrupts()
	becomeProgram()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeProgram()
		os.Exit(code)
	}))
}

// heedInterrupts has commands start with the usual SIGINT where this process ignores it, as in the
// background of a shell. Programs inherit what is ignored, but not what is caught.
func heedInterrupts() {
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
}

// holdVariable makes the test binary a program that starts a command, says so
// and never ends by itself.
const holdVariable = "SANDBOX_TEST_HOLD"

func hold() {
	box := new(Sandbox)
	_, err := box.Start(Command{Argv: []string{"/bin/sh", "-c", os.Getenv(holdVariable)}, Dir: "/", Output: os.Stdout})
	if err != nil {
		panic(err)
	}
	select {}
}

// newOptions confines commands to an empty workspace.
func newOptions(t testing.TB) Options {
	return Options{Network: NetworkLoopback, Folders: grants.Folders{Mode: grants.WorkspaceWrite, Workspace: t.TempDir(), Scratch: t.TempDir()}}
}

func open(t *testing.T, box *Sandbox) *Sandbox {
	t.Helper()
	t.Cleanup(func() {
		must.Is(t, nil, box.Close())
	})
	return box
}

// eachWay runs a test without confinement, and with a sandbox of each tier.
func eachWay(t *testing.T, test func(t *testing.T, box *Sandbox, o Options)) {
	t.Run("unconfined", func(t *testing.T) { test(t, open(t, new(Sandbox)), newOptions(t)) })
	eachConfined(t, test)
}

func script(t *testing.T, text string, output io.Writer) Command {
	t.Helper()
	return bash(newOptions(t), text, output)
}

func bash(o Options, text string, output io.Writer) Command {
	return Command{Argv: []string{"sh", "-c", text}, Dir: o.Workspace, Output: output, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}}
}

// holders is a pipe by which a test sees processes end: gone is closed once
// nobody holds its writing end any more.
type holders struct {
	path string
	gone <-chan struct{}
}

func watch(t *testing.T) holders {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holders")
	must.Do(t, syscall.Mkfifo(path, 0o600))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = os.ReadFile(path)
	}()
	return holders{path, gone}
}

func (h holders) mustGo(t *testing.T) {
	t.Helper()
	<-h.gone // or a process is left, and the tests' own limit ends them
}

func TestRun(t *testing.T) {
	eachWay(t, func(t *testing.T, box *Sandbox, o Options) {
		for _, test := range []struct {
			name   string
			argv   []string
			want   Status
			output string
		}{
			{"arguments are not joined", []string{"printf", "<%s>", "a b", "$HOME", "*"}, Status{}, "<a b><$HOME><*>"},
			{"arguments need not be text", []string{"printf", "%s", "\xff\xfe<&>"}, Status{}, "\xff\xfe<&>"},
			{"standard error", []string{"sh", "-c", "echo a; echo b >&2; echo c"}, Status{}, "a\nb\nc\n"},
			{"exit code", []string{"sh", "-c", "exit 42"}, Status{ExitCode: 42}, ""},
			{"signal", []string{"sh", "-c", "kill -KILL $$"}, Status{ExitCode: 137, Signal: "killed"}, ""},
			{"standard input is empty", []string{"cat"}, Status{}, ""},
			{"what is left behind holds the output", []string{"sh", "-c", "sleep 3600 & echo started"}, Status{}, "started\n"},
		} {
			t.Run(test.name, func(t *testing.T) {
				var output bytes.Buffer
				c := bash(o, "", &output)
				c.Argv = test.argv
				status, err := box.Run(t.Context(), c)
				if err != nil || status != test.want || output.String() != test.output {
					t.Errorf("%+v, %v, with the output %q", status, err, output.String())
				}
			})
		}
	})
}

func TestCommandsGetOnlyGivenEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_PARENT", "x")
	env := must.Get(exec.LookPath("env"))(t)
	for _, test := range []struct {
		given []string
		want  string
	}{{nil, ""}, {[]string{"A=1", "B=2"}, "A=1\nB=2\n"}} {
		var output bytes.Buffer
		box := open(t, new(Sandbox))
		must.Get(box.Run(t.Context(), Command{Argv: []string{env}, Dir: "/", Env: test.given, Output: &output}))(t)
		must.Same(t, test.want, output.String(), "given", test.given, "the command sees")
	}
}

func TestReportsUnstartedCommands(t *testing.T) {
	missing := []string{"no such program", "no such file", "no directory"}
	eachWay(t, func(t *testing.T, box *Sandbox, o Options) {
		for name, c := range map[string]Command{
			"nothing":         {Dir: "/"},
			"no such file":    {Argv: []string{"/no/such/program"}, Dir: "/"},
			"no such program": {Argv: []string{"no-such-program"}, Dir: "/", Env: []string{"PATH=/bin"}},
			"no directory":    {Argv: []string{"/bin/sh"}, Dir: "/no/such/directory"},
			"a directory":     {Argv: []string{"/"}, Dir: "/"},
			"NUL":             {Argv: []string{"/bin/sh", "\x00"}, Dir: "/"},
		} {
			if _, err := box.Run(t.Context(), c); !errors.Is(err, ErrNotStarted) || IsMissing(err) != slices.Contains(missing, name) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		must.Is(t, nil, box.Close())
		if _, err := box.Start(bash(o, "true", nil)); !errors.Is(err, errClosed) || !errors.Is(err, ErrNotStarted) {
			t.Errorf("after Close: got %v", err)
		}
	})
}

func TestCommandHasOwnSession(t *testing.T) {
	box := open(t, new(Sandbox))
	p := must.Get(box.Start(script(t, "exec sleep 3600", nil)))(t)
	pid := p.child.(*localChild).cmd.Process.Pid
	must.Same(t, pid, must.Get(unix.Getsid(pid))(t), "session is")
}

func TestLeftoversDieWithCommand(t *testing.T) {
	h := watch(t)
	var output bytes.Buffer
	box := open(t, new(Sandbox))
	// The child holds the command's output, too.
	status, err := box.Run(t.Context(), script(t, "exec 3>"+h.path+"; sleep 3600 & echo done", &output))
	if err != nil || status.ExitCode != 0 || output.String() != "done\n" {
		t.Errorf("got %+v, %v, %q", status, err, output.String())
	}
	h.mustGo(t)
}

func TestCancelEndsWholeGroup(t *testing.T) {
	h := watch(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	box := open(t, new(Sandbox))
	status, err := box.Run(ctx, script(t, "exec 3>"+h.path+"; sleep 3600 & echo up; wait", cancelling(cancel)))
	if !errors.Is(err, context.Canceled) || status.Signal != "killed" {
		t.Errorf("got %+v, %v", status, err)
	}
	h.mustGo(t)
}

// cancelling ends a context once something was printed.
type cancelling context.CancelFunc

func (c cancelling) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}

func TestSignalsEndCommands(t *testing.T) {
	eachWay(t, func(t *testing.T, box *Sandbox, o Options) {
		for _, end := range []struct {
			by   syscall.Signal
			want Status
		}{{syscall.SIGINT, Status{130, "interrupt"}}, {syscall.SIGKILL, Status{137, "killed"}}} {
			up := make(chan struct{})
			p := must.Get(box.Start(bash(o, "echo up; exec sleep 3600", cancelling(func() { close(up) }))))(t)
			<-up
			p.Signal(end.by)
			if status, err := p.Wait(); err != nil || status != end.want {
				t.Errorf("got %+v, %v", status, err)
			}
			p.Signal(end.by) // nothing happens to whoever has the id now
			p.Kill()
		}
	})
}

func TestCloseEndsRunningCommands(t *testing.T) {
	h := watch(t)
	box := new(Sandbox)
	up := make(chan struct{})
	p := must.Get(box.Start(script(t, "exec 3>"+h.path+"; sleep 3600 & echo up; wait", cancelling(func() { close(up) }))))(t)
	<-up
	for range 2 {
		must.Is(t, nil, box.Close())
	}
	select {
	case <-p.Done():
	default:
		t.Error("Close came back before the command had ended")
	}
	h.mustGo(t)
}

// failing is a writer that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFailingWriterKeepsCommandRunning(t *testing.T) {
	box := open(t, new(Sandbox))
	c := script(t, "yes | head -c 1000000; touch done", failing{})
	status, err := box.Run(t.Context(), c)
	if status.ExitCode != 0 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %+v, %v", status, err)
	}
	must.Is(t, nil, must.Err(os.Stat(filepath.Join(c.Dir, "done"))), "the command did not come to its end")
}

func TestHidesInheritedDescriptors(t *testing.T) {
	fd, err := syscall.Dup(0) // without close-on-exec
	must.Do(t, err)
	defer syscall.Close(fd)
	box := open(t, new(Sandbox))
	status, err := box.Run(t.Context(), script(t, "test ! -e /dev/fd/"+strconv.Itoa(fd), nil))
	if err != nil || status.ExitCode != 0 {
		t.Errorf("the command sees descriptor %d: %+v, %v", fd, status, err)
	}
}

func TestRemoveScratchRemovesUnwritableFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scratch")
	must.Do(t, os.MkdirAll(filepath.Join(dir, "closed", "below"), 0o700))
	must.Do(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	must.Is(t, nil, RemoveScratch(dir))
	must.Is(t, fs.ErrNotExist, must.Err(os.Lstat(dir)), "it is there")
}
