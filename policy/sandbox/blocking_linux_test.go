package sandbox

import (
	"os/exec"
	"strings"
	"testing"
)

// A command writes as fast as it likes: its output waits for who reads it.
func TestOutputWaitsForItsReader(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		got := run(t, box, o, `python3 -c 'import os; print(os.get_blocking(1), os.get_blocking(2))'; head -c 3000000 /dev/zero | tr '\0' x || echo; true`)
		if first, rest, _ := strings.Cut(got, "\n"); first != "True True" || len(rest) != 3000000 {
			t.Errorf("blocking: %s; %d bytes of 3000000 came", first, len(rest))
		}
	})
}
