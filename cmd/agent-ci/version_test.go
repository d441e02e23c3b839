package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What go build and go install of a checkout make knows its commit, without the Makefile.
func TestVersionOfACheckoutIsItsCommit(t *testing.T) {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	checkout := t.TempDir()
	entries, err := os.ReadDir(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := os.Symlink(filepath.Join(source, entry.Name()), filepath.Join(checkout, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	do := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = checkout
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.invalid")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	do("git", "init", "--quiet", "--initial-branch=main")
	do("git", "add", "--all")
	do("git", "commit", "--quiet", "--message=m")
	program := filepath.Join(t.TempDir(), "agent-ci")
	build := func() string {
		t.Helper()
		do("go", "build", "-trimpath", "-buildvcs=true", "-o", program, "./cmd/agent-ci")
		return do(program, "version")
	}
	short := do("git", "rev-parse", "--short=12", "HEAD")
	if got := build(); !strings.HasPrefix(got, "agent-ci "+short+" (") {
		t.Errorf("it is %q, want the commit %s", got, short)
	}
	if err := os.WriteFile(filepath.Join(checkout, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := build(); !strings.HasPrefix(got, "agent-ci "+short+"-dirty (") {
		t.Errorf("it is %q, want the commit %s-dirty", got, short)
	}
}
