package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// Confined commands of root write nothing in a checkout of somebody else, as
// that of the runner in a container of a workflow.
func TestRootIsWarnedOfACheckoutOfSomebodyElse(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || confines() == sandbox.LevelNone {
		t.Skip("needs root and confinement")
	}
	w := newWorkshop(t)
	checkout := filepath.Join(w.dir, "checkout")
	w.git(w.dir, "init", "--quiet", "--initial-branch=main", checkout)
	w.git(checkout, "commit", "--quiet", "--allow-empty", "--message=begin")
	w.write("say.yml", "version: 1\nturns:\n  - output: [{say: Nothing.}]\n")
	result := func(out string) string {
		cmd := exec.Command(binary, "run", "--prompt", "x", "--quiet", "--repo", checkout, "--replay", filepath.Join(w.dir, "say.yml"), "--out", filepath.Join(w.dir, out))
		cmd.Env, cmd.Dir = w.env, w.dir
		if told, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, told)
		}
		raw, err := os.ReadFile(filepath.Join(w.dir, out, "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if strings.Contains(result("own"), "checkout_owner") {
		t.Error("warned of a checkout of its own")
	}
	if err := os.Chown(checkout, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got := result("other"); !strings.Contains(got, `"checkout_owner"`) {
		t.Errorf("not warned:\n%s", got)
	}
}
