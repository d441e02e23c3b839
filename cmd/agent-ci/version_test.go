package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The toolchain notes the commit of what it builds, in a checkout that is no linked work tree.
func TestBuildVersionIsCommit(t *testing.T) {
	t.Parallel()
	source := filepath.Join("..", "..")
	if info, err := os.Stat(filepath.Join(source, ".git")); err != nil || !info.IsDir() {
		t.Skip("the sources are in no checkout of their own")
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", source}, args...)...).Output()
		if err != nil {
			t.Skipf("git can't tell of the checkout: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	want := git("rev-parse", "--short=12", "HEAD")
	if git("status", "--porcelain") != "" {
		want += "-dirty"
	}
	program := filepath.Join(t.TempDir(), "agent-ci")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=true", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	if got := string(out); err != nil || !strings.HasPrefix(got, "agent-ci "+want+" (") {
		t.Errorf("it is %q, %v, not the commit %s", got, err, want)
	}
}
