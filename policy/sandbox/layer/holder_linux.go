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

// holderFile of the folder of an overlay names the process inside of the sandbox that has
// it mounted, or had, and in further lines those of sandboxes that it was lent to.
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
	return os.WriteFile(filepath.Join(overlay, holderFile), holderOf(pid).line(), 0o600)
}

// Join notes that the process of a further sandbox has the overlay, lent by the one that
// mounted it.
func Join(overlay string, pid int) error {
	f, err := os.OpenFile(filepath.Join(overlay, holderFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(holderOf(pid).line())
	return errors.Join(err, f.Close())
}

func (h holder) line() []byte { return fmt.Appendln(nil, h.pid, h.begun) }

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
	for line := range strings.Lines(string(raw)) {
		var had holder
		_, _ = fmt.Sscan(line, &had.pid, &had.begun)
		if err := had.await(ctx, wait); err != nil {
			return err
		}
	}
	return nil
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
