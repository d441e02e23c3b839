package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// A signal ends a run that waits for a prompt from an input that nobody closes.
func TestSignalEndsWaitForPrompt(t *testing.T) {
	t.Parallel()
	exitSignalled(t, nil, syscall.SIGTERM)
}

// A run that nohup(1) started outlives its terminal.
func TestRunUnderNohupIgnoresSIGHUP(t *testing.T) {
	t.Parallel()
	exitSignalled(t, []string{"/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`}, syscall.SIGHUP, syscall.SIGTERM)
}

// exitSignalled starts a run by a program, sends it signals while it reads its prompt, and
// checks that SIGTERM ended it.
func exitSignalled(t *testing.T, by []string, signals ...syscall.Signal) {
	w := newWorkshop(t)
	w.repository(w.dir)
	out := filepath.Join(t.TempDir(), "run")
	argv := append(by, binary, "run", "--prompt-file", "-", "--quiet", "--publish", "none", "--out", out)
	cmd := exec.Command(argv[0], argv[1:]...)
	input := must.Get(cmd.StdinPipe())(t)
	defer input.Close()
	var told strings.Builder
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, w.dir, &told, &told
	must.Do(t, cmd.Start())
	awaitFile(filepath.Join(out, "transcript.jsonl"), 0)
	for _, s := range signals {
		must.Do(t, cmd.Process.Signal(s))
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 || !strings.HasPrefix(told.String(), "cancelled/sigterm: ") {
		t.Errorf("exit status %d\n%s", code, &told)
	}
}

// awaitFile waits until a file is there and has so many bytes.
func awaitFile(path string, size int64) {
	for info, err := os.Stat(path); err != nil || info.Size() < size; info, err = os.Stat(path) {
		runtime.Gosched()
	}
}

// A pipe in the place of a file is not waited for where nobody writes to it, and
// else until a signal comes.
func TestPipesInsteadOfFilesDoNotBlock(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, openly)
	w.repository(w.dir)
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for name, args := range map[string][]string{
		"job":       {"run", pipe},
		"prompt":    {"run", "--prompt-file", pipe},
		"session":   {"run", "--prompt", "x", "--replay", pipe},
		"rules":     {"run", "--prompt", "x", "--set", "policy.rules=[" + pipe + "]"},
		"validate":  {"validate", pipe},
		"check":     {"sandbox", "--explain", "--rules", pipe, "--", "true"},
		"run":       {"resume", w.piped("transcript.jsonl")},
		"report":    {"report", w.piped("transcript.jsonl"), "--verify"},
		"publish":   {"publish", w.piped("transcript.jsonl")},
		"directory": {"replay", w.piped("transcript.jsonl")},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := w.agent(args...); name != "check" && err == nil {
				t.Errorf("it succeeds:\n%s", out)
			}
		})
	}
	writer := must.Get(os.OpenFile(pipe, os.O_RDWR, 0))(t)
	defer writer.Close()
	out := filepath.Join(t.TempDir(), "run")
	cmd, _ := w.command("run", pipe, "--quiet", "--out", out)
	must.Do(t, cmd.Start())
	awaitFile(filepath.Join(out, "state", "alive"), 1)
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	must.Contain(t, string(must.Get(os.ReadFile(filepath.Join(out, "result.json")))(t)), `"reason": "sigterm"`)
}

// piped is a folder with a pipe of that name.
func (w *workshop) piped(name string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	must.Do(w.t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	return dir
}

// A run that is stuck, here in telling of an event to who does not read it, leaves
// a result after the second signal, by which it goes on.
func TestSecondSignalWritesResult(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.repository(w.dir)
	w.write("session.yml", "version: 1\nturns: [{output: [{say: Done.}]}]\n")
	events, full := fullPipe(t)
	defer events.Close()
	out := filepath.Join(t.TempDir(), "run")
	cmd, _ := w.command("run", "--json", "--prompt", "x", "--publish", "none", "--replay", "session.yml", "--out", out, "--quiet")
	cmd.Stdout = full
	must.Do(t, cmd.Start())
	full.Close()
	awaitFile(filepath.Join(out, "transcript.jsonl"), 1)
	for _, s := range []os.Signal{syscall.SIGQUIT, syscall.SIGINT} { // two of one kind may come as one
		must.Do(t, cmd.Process.Signal(s))
	}
	_ = cmd.Wait()
	raw, err := os.ReadFile(filepath.Join(out, "result.json"))
	if err != nil || !strings.Contains(string(raw), `"outcome": "cancelled"`) || cmd.ProcessState.ExitCode() < 130 {
		t.Fatalf("exit status %d, the result is %s, %v", cmd.ProcessState.ExitCode(), raw, err)
	}
	if told, err := w.agent("report", out, "--verify"); err != nil {
		t.Errorf("%v\n%s", err, told)
	}
}

// fullPipe is a pipe that takes no more.
func fullPipe(t *testing.T) (from, to *os.File) {
	t.Helper()
	var ends [2]int
	must.Do(t, syscall.Pipe(ends[:]))
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	must.Do(t, syscall.SetNonblock(ends[1], true))
	for _, err := syscall.Write(ends[1], make([]byte, 1)); err == nil; _, err = syscall.Write(ends[1], make([]byte, 4096)) {
	}
	must.Do(t, syscall.SetNonblock(ends[1], false))
	return os.NewFile(uintptr(ends[0]), "from"), os.NewFile(uintptr(ends[1]), "to")
}
