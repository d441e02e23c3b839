package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// atStart is the most, in bytes, that a package of ours may allocate before
// main: every start pays for it, those of the stages inside a sandbox too.
const atStart = 72 << 10

func TestPackagesAllocateLittleAtStart(t *testing.T) {
	t.Parallel()
	trace := must.Get(initTrace("agent-ci", "version"))(t)
	ours := 0
	for line := range strings.Lines(trace) {
		var name string
		var at, took float64
		var bytes, objects int
		_, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &took, &bytes, &objects)
		if err != nil || !strings.HasPrefix(name, "github.com/agent-ci/agent-ci/") {
			continue
		}
		if ours++; bytes > atStart {
			t.Errorf("%s allocates %d bytes in %d objects at start, more than %d: make what it prepares when it is needed (sync.OnceValue)", name, bytes, objects, atStart)
		}
	}
	if ours == 0 {
		t.Errorf("no package of ours is in the trace:\n%s", trace)
	}
}

// initTrace runs the program with arguments, of which the first is its name, and returns which packages
// are initialised.
func initTrace(args ...string) (string, error) {
	cmd := exec.Command(binary)
	cmd.Args, cmd.Env = args, append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	err := cmd.Run()
	return trace.String(), err
}

// apply_patch ends before packages are initialised that it does not need. An import of a package whose path
// is late in the order of initialisation would delay it: runtime/debug does.
func TestApplyPatchStartsEarly(t *testing.T) {
	t.Parallel()
	all := must.Get(initTrace("agent-ci", "version"))(t)
	few, err := initTrace("apply_patch")
	must.Same(t, true, strings.Contains(few, "apply_patch: there is no patch"), err, few)
	for _, name := range []string{"gopkg.in/yaml%2ev3", "net/http", "github.com/openai/openai-go/v3/responses"} {
		line := "init " + name + " @"
		if !strings.Contains(all, line) || strings.Contains(few, line) {
			t.Errorf("%s: initialised by agent-ci version: %t, by apply_patch: %t", name, strings.Contains(all, line), strings.Contains(few, line))
		}
	}
}
