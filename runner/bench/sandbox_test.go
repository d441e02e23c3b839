package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// trues is how often a command that does nothing is run, with and without a
// sandbox in turns.
const trues = 200

// BenchmarkTurnCommand is what a command of a run costs more than a plain one, and what its shell does.
func BenchmarkTurnCommand(b *testing.B) {
	base := b.TempDir()
	box, err := sandbox.Open(b.Context(), sandbox.Options{
		Network: sandbox.NetworkLoopback, Require: sandbox.LevelFull,
		Folders: grants.Folders{
			Mode: grants.WorkspaceWrite, Workspace: base, Home: os.Getenv("HOME"), Scratch: filepath.Join(b.TempDir(), "scratch"), Environ: os.Environ(),
		},
	})
	if err != nil {
		b.Skip(err)
	}
	defer box.Close()
	var bare sandbox.Sandbox
	defer bare.Close()
	var confined, plain, shell []time.Duration
	for b.Loop() {
		confined, plain, shell = nil, nil, nil
		for range trues {
			confined = append(confined, timeInSandbox(b, box, base, "/bin/true"))
			plain = append(plain, timeInSandbox(b, &bare, base, "/bin/true"))
			shell = append(shell, timeInSandbox(b, box, base, "/bin/bash", "-c", "echo 1"))
		}
	}
	results.time("a sandboxed true inside a run, over a plain one, all layers on", medianOf(confined)-medianOf(plain), 3*time.Millisecond)
	results.time("  the plain one: fork, exec and wait", medianOf(plain), 0)
	results.time("  a sandboxed bash -c echo, over the sandboxed true", medianOf(shell)-medianOf(confined), 0)
}

func timeInSandbox(b *testing.B, box *sandbox.Sandbox, dir string, argv ...string) time.Duration {
	b.Helper()
	began := time.Now()
	if status, err := box.Run(b.Context(), sandbox.Command{Argv: argv, Dir: dir}); err != nil || status.ExitCode != 0 {
		b.Fatal(status, err)
	}
	return time.Since(began)
}

// BenchmarkSandboxCommand is what agent-ci sandbox costs more than a command of
// the program that does nothing.
func BenchmarkSandboxCommand(b *testing.B) {
	if _, err := os.Stat(*binary); err != nil {
		b.Skipf("there is no program to measure (%v); make bench builds it", err)
	}
	dir, home := b.TempDir(), b.TempDir()
	var confined, version []time.Duration
	for b.Loop() {
		confined, version = nil, nil
		for range trues {
			confined = append(confined, timeOfProgram(b, *binary, dir, home, "sandbox", "--", "true"))
			version = append(version, timeOfProgram(b, *binary, dir, home, "version"))
		}
	}
	results.time("agent-ci sandbox -- true, over agent-ci version", medianOf(confined)-medianOf(version), 6*time.Millisecond)
}

func timeOfProgram(b *testing.B, program, dir, home string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Skipf("%s %v: %v\n%s", program, args, err, out)
	}
	return time.Since(began)
}
