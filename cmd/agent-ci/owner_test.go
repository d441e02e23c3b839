package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// In a container of a workflow root works in a checkout of the runner's user: commands have a private copy.
func TestRootWorksInForeignCheckout(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || confines() == sandbox.LevelNone {
		t.Skip("needs root and confinement")
	}
	w := newWorkshop(t)
	checkout := filepath.Join(w.dir, "checkout")
	w.repository(checkout)
	w.write("greet.yml", "version: 1\nturns:\n  - output: [{call: exec_command, arguments: {cmd: 'echo hello >greeting.txt'}}]\n  - output: [{say: Done.}]\n")
	must.Do(t, os.Chown(checkout, 65534, 65534))
	if told, err := w.agent("run", "--prompt", "x", "--quiet", "--repo", checkout, "--replay", filepath.Join(w.dir, "greet.yml"), "--out", filepath.Join(w.dir, "run"), "--publish", "none"); err != nil || !strings.Contains(told, "changed/left_in_checkout") {
		t.Fatalf("%v\n%s", err, told)
	}
	if raw, err := os.ReadFile(filepath.Join(checkout, "greeting.txt")); string(raw) != "hello\n" {
		t.Errorf("the checkout has %q, %v", raw, err)
	}
}
