package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestReleaseIsPublished runs the half of .ci/release that a dry run leaves out,
// with a forge that is a repository on this machine and a gh that notes what it
// was asked.
func TestReleaseIsPublished(t *testing.T) {
	t.Parallel()
	root, programs, bare := t.TempDir(), t.TempDir(), t.TempDir()
	script := read(t, "../../.ci/release")
	asked := filepath.Join(t.TempDir(), "asked")
	for path, content := range map[string]string{
		filepath.Join(root, ".ci/release"):                         script,
		filepath.Join(root, ".gitignore"):                          "/dist/\n",
		filepath.Join(root, "dist/version"):                        "v1.2.3\n",
		filepath.Join(root, "dist/checksums.txt"):                  "0  agent-ci-linux-amd64\n",
		filepath.Join(root, "dist/agent-ci-linux-amd64"):           "binary",
		filepath.Join(root, "dist/agent-ci-linux-amd64.spdx.json"): "{}",
		filepath.Join(programs, "gh"):                              "#!/bin/sh\necho \"$@\" >>" + asked + "\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(content), 0o755))
	}
	do := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + programs,
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.invalid",
		}
		out, err := cmd.CombinedOutput()
		must.Do(t, err, name, strings.Join(args, " "), out)
		return strings.TrimSpace(string(out))
	}
	do(bare, "git", "init", "--quiet", "--bare")
	do(root, "git", "init", "--quiet", "--initial-branch=main")
	do(root, "git", "add", "--all")
	do(root, "git", "commit", "--quiet", "--message=begin")
	do(root, "git", "remote", "add", "origin", bare)
	do(root, "git", "push", "--quiet", "origin", "main")
	before := do(bare, "git", "rev-parse", "main")

	do(root, "bash", ".ci/release", "v1.2.3", "publish")
	must.Same(t, "Release v1.2.3\n\ndist/checksums.txt\ndist/version", do(bare, "git", "show", "--name-only", "--format=%s", "v1.2.3"), "the tag is on")
	must.Same(t, before, do(bare, "git", "rev-parse", "v1.2.3^"), "the release stands on")
	must.Same(t, before, do(bare, "git", "rev-parse", "main"), "main moved to")
	must.Same(t, do(bare, "git", "rev-parse", "v1.2.3"), do(bare, "git", "rev-parse", "v1"), "v1 is the release")
	calls, err := os.ReadFile(asked)
	want := "auth setup-git\nrelease create v1.2.3 --verify-tag --title v1.2.3 --generate-notes " +
		"dist/agent-ci-linux-amd64 dist/agent-ci-linux-amd64.spdx.json dist/checksums.txt\n"
	if err != nil || string(calls) != want {
		t.Errorf("gh was asked %q, %v", calls, err)
	}

	released := do(bare, "git", "rev-parse", "v1")
	do(root, "git", "checkout", "--quiet", "main")
	do(root, "git", "checkout", "--quiet", "v1.2.3", "--", "dist")
	do(root, "bash", ".ci/release", "v1.3.0-rc.1", "publish")
	must.Same(t, released, do(bare, "git", "rev-parse", "v1"), "v1 follows a preview")
}
