package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A signal ends a run that waits for a prompt from an input that nobody closes.
func TestASignalWhileThePromptIsWaitedFor(t *testing.T) {
	w := newWorkshop(t)
	w.git(w.dir, "init", "--quiet")
	w.git(w.dir, "commit", "--quiet", "--allow-empty", "--message=begin")
	out := filepath.Join(t.TempDir(), "run")
	cmd := exec.Command(binary, "run", "--prompt-file", "-", "--quiet", "--publish", "none", "--out", out)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	var told strings.Builder
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, w.dir, &told, &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, err := os.Stat(filepath.Join(out, "transcript.jsonl")); err != nil; _, err = os.Stat(filepath.Join(out, "transcript.jsonl")) {
		runtime.Gosched()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 || !strings.HasPrefix(told.String(), "cancelled/sigterm: ") {
		t.Errorf("exit status %d\n%s", code, &told)
	}
}
