package record

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// Lock makes this process the only one that works in the run directory, until
// it ends.
func (d *Directory) Lock() error {
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("lock the run directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return outcome.Stopf(outcome.InvalidInput, "run_directory", "Another agent-ci works in %s (%v); wait until it has ended.", d.path, err).Because(err)
	}
	d.held = f
	return nil
}
