package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
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
	program := filepath.Join(must.Get(build("of-commit", "-buildvcs=true", "-ldflags", "-s -w", "."))(t), "agent-ci")
	out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	if got := string(out); err != nil || !strings.HasPrefix(got, "agent-ci "+want+" (") {
		t.Errorf("it is %q, %v, not the commit %s", got, err, want)
	}
}
