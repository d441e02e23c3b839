package resolve_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
)

// git runs git in a folder, with an identity.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func emptyTree(t *testing.T, dir string) string {
	t.Helper()
	return git(t, dir, "hash-object", "-t", "tree", "-w", "/dev/null")
}

// open opens a pull request of octo-org/widgets.
func open(t *testing.T, client *github.Client, head string) {
	t.Helper()
	if _, err := client.Repository("octo-org/widgets").CreatePullRequest(t.Context(), forge.NewPullRequest{Title: "T", Head: head, Base: "main"}); err != nil {
		t.Fatal(err)
	}
}
