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
	"time"

	"golang.org/x/sys/unix"
)

// holderFile of the folder of an overlay names the process inside of the sandbox that has
// it mounted, or had.
const holderFile = "holder"

// heldWait is how long the processes of a sandbox that was left may take to end: one
// gives back much memory first.
const heldWait = time.Minute

// holder names a process, also where its number is given once more.
type holder struct {
	pid   int
	begun string // in ticks after the start of the machine; empty where that can't be read
}

func holderOf(pid int) holder {
	const begun = 19 // of the fields behind the name, in proc_pid_stat(5)
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= begun {
		return holder{pid, ""}
	}
	return holder{pid, string(fields[begun])}
}

// Hold makes sure that the overlay in a folder is mounted nowhere, for which it waits as
// long as is said, a minute for 0, and notes that the process of a sandbox mounts it now.
// The error is a HeldError where it is mounted still.
func Hold(ctx context.Context, overlay string, pid int, wait time.Duration) error {
	if err := await(ctx, overlay, cmp.Or(wait, heldWait)); err != nil {
		return err
	}
	now := holderOf(pid)
	return os.WriteFile(filepath.Join(overlay, holderFile), fmt.Appendln(nil, now.pid, now.begun), 0o600)
}

// Await waits until the overlay in a folder is mounted nowhere. The error is a HeldError
// where that takes too long.
func Await(ctx context.Context, overlay string) error { return await(ctx, overlay, heldWait) }

func await(ctx context.Context, overlay string, wait time.Duration) error {
	raw, err := os.ReadFile(filepath.Join(overlay, holderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var last holder
	_, _ = fmt.Sscan(string(raw), &last.pid, &last.begun)
	return last.await(ctx, wait)
}

// await waits for the end of the process inside. It is the first of its pid namespace, and
// ends when all others there are gone, and with them what they have mounted. A lock would
// not tell: the process lets go of its files before it waits for the others.
func (h holder) await(ctx context.Context, wait time.Duration) error {
	if h.pid <= 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(h.pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(fd)
	if holderOf(h.pid) != h {
		return nil // the number is another one's
	}
	const look = 50 * time.Millisecond
	for until := time.Now().Add(wait); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(look.Milliseconds()))
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the process %d: %w", h.pid, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(until):
			return &HeldError{h.pid}
		}
	}
}
