package layer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// holderFile is the name of a file in an overlay's folder. Its first line names the supervisor that
// mounted the overlay last; further lines name those of borrowers.
const holderFile = "holder"

// unmountWait bounds the wait for the processes of a closed sandbox, which may need long to free memory.
const unmountWait = time.Minute

// mountOwner identifies a process even if its number is reused.
type mountOwner struct {
	pid     int
	started string // in ticks since the machine started; empty if unknown
}

// ownerWithPID returns the process with a pid as a mountOwner.
func ownerWithPID(pid int) mountOwner {
	const started = 19 // index of the field starttime after the name, in proc_pid_stat(5)
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= started {
		return mountOwner{pid, ""}
	}
	return mountOwner{pid, string(fields[started])}
}

// ClaimOverlay waits until an overlay is mounted nowhere, and records pid as its owner. It waits up to
// wait; 0 means a minute. It then returns a MountedError if the overlay is still mounted.
func ClaimOverlay(ctx context.Context, overlay string, pid int, wait time.Duration) error {
	if err := awaitOwners(ctx, overlay, cmp.Or(wait, unmountWait)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(overlay, holderFile), ownerWithPID(pid).line(), 0o600)
}

// AddBorrower records pid as a process that has borrowed an overlay.
func AddBorrower(overlay string, pid int) error {
	f, err := os.OpenFile(filepath.Join(overlay, holderFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(ownerWithPID(pid).line())
	return errors.Join(err, f.Close())
}

func (owner mountOwner) line() []byte { return fmt.Appendln(nil, owner.pid, owner.started) }

// AwaitUnmounted waits until an overlay is mounted nowhere. It returns a MountedError after unmountWait.
func AwaitUnmounted(ctx context.Context, overlay string) error {
	return awaitOwners(ctx, overlay, unmountWait)
}

// awaitOwners waits until no recorded process of an overlay lives, up to wait for each.
func awaitOwners(ctx context.Context, overlay string, wait time.Duration) error {
	raw, err := os.ReadFile(filepath.Join(overlay, holderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		var owner mountOwner
		_, _ = fmt.Sscan(line, &owner.pid, &owner.started)
		if err := owner.awaitExit(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// awaitExit waits up to wait until the process has exited. It is the first process of its pid namespace, so
// it exits after all others, and with it their mounts end. A file lock would be released too early.
func (owner mountOwner) awaitExit(ctx context.Context, wait time.Duration) error {
	if owner.pid <= 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(owner.pid, 0)
	if err != nil {
		return nil // the process has exited
	}
	defer unix.Close(fd)
	if ownerWithPID(owner.pid) != owner {
		return nil // another process has the pid now
	}
	const pollInterval = 50 * time.Millisecond
	for deadline := time.Now().Add(wait); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(pollInterval.Milliseconds()))
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the process %d: %w", owner.pid, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return &MountedError{owner.pid}
		}
	}
}
