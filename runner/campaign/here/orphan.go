package here

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// errStays is that a process of the run goes on beyond the time that its job gives it, and an earlier
// start left it.
var errStays = errors.New("a process that an earlier start left does not end")

// processFile has the id of the process that the run was last started as.
func (w *work) processFile() string { return w.directory() + ".pid" }

// note notes the process of the run, for a start after this one.
func (w *work) note(process *os.Process) error {
	if err := os.WriteFile(w.processFile(), []byte(strconv.Itoa(process.Pid)), 0o600); err != nil {
		return fmt.Errorf("note the process of the run: %w", err)
	}
	return nil
}

// endOrphan ends the process that an earlier start left, in order and then at once, and takes the log
// that it held. Where it is not certain which process that is, none is touched.
func (w *work) endOrphan(ctx context.Context, log *os.File) error {
	process := w.orphan(log)
	if process == nil {
		return errStays
	}
	defer func() { _ = process.Release() }()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("%w, and could not be ended: %w", errStays, err)
		}
		if err := w.hold(ctx, log, w.Farewell); !errors.Is(err, errStays) {
			return err
		}
	}
	return errStays
}

// orphan is the process that was noted, if it writes to the log of the run; nil otherwise, and where
// the system does not tell. It is held from before it is looked at, so that no other gets its id
// meanwhile.
func (w *work) orphan(log *os.File) *os.Process {
	raw, err := os.ReadFile(w.processFile())
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(string(raw))
	if err != nil || pid <= 1 {
		return nil
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	output, err := os.Stat(fmt.Sprintf("/proc/%d/fd/1", pid))
	if err == nil {
		if own, err := log.Stat(); err == nil && os.SameFile(output, own) {
			return process
		}
	}
	_ = process.Release()
	return nil
}
