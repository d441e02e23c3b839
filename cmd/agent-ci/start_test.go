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
	cmd := exec.Command(binary, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	must.Do(t, cmd.Run())
	ours := 0
	for line := range strings.Lines(trace.String()) {
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
		t.Errorf("no package of ours is in the trace:\n%s", trace.String())
	}
}
