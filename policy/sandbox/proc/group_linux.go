package proc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Group is a version 2 cgroup for child processes (cgroups(7)). A nil Group means no cgroup.
type Group struct {
	path string
	dir  *os.File
}

// NewGroup makes a cgroup below this process's own or beside it. maxProcesses is the maximum number of
// processes; 0 sets no limit. It returns nil if the user may not make such a cgroup.
func NewGroup(maxProcesses int) *Group {
	own := ownCgroup()
	if own == "" {
		return nil
	}
	for _, parent := range []string{own, filepath.Dir(own)} {
		if g := newGroupIn(parent, maxProcesses); g != nil {
			return g
		}
	}
	return nil
}

// newGroupIn makes a cgroup in the folder parent, or returns nil. A limit requires that parent delegates
// the pids controller. newGroupIn does not enable that: the setting belongs to others, and the kernel
// rejects it for a cgroup with processes.
func newGroupIn(parent string, maxProcesses int) *Group {
	delegated, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	wantsLimit := maxProcesses > 0
	lacksLimit := wantsLimit && !slices.Contains(strings.Fields(string(delegated)), "pids")
	if err != nil || lacksLimit {
		return nil
	}
	path, err := os.MkdirTemp(parent, "agent-ci-")
	if err != nil {
		return nil
	}
	g := &Group{path: path}
	g.dir, err = os.Open(path)
	if wantsLimit {
		err = errors.Join(err, g.set("pids.max", strconv.Itoa(maxProcesses)))
	}
	if err != nil {
		g.Remove()
		return nil
	}
	return g
}

// Freeze stops all processes of the cgroup without their notice. It returns fs.ErrNotExist before Linux
// 5.2.
func (g *Group) Freeze() error {
	if err := g.set("cgroup.freeze", "1"); err != nil {
		return err
	}
	err := g.awaitFrozen()
	if err != nil {
		err = errors.Join(err, g.Thaw())
	}
	return err
}

// Thaw resumes all processes of the cgroup.
func (g *Group) Thaw() error { return g.set("cgroup.freeze", "0") }

// Attach makes a process with these attributes start in the cgroup.
func (g *Group) Attach(attributes *syscall.SysProcAttr) {
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.dir.Fd())
}

// set writes one of the cgroup's files.
func (g *Group) set(name, value string) error {
	f, err := os.OpenFile(filepath.Join(g.path, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// awaitFrozen waits until all processes have stopped, up to freezeWait.
func (g *Group) awaitFrozen() error {
	f, err := os.Open(filepath.Join(g.path, "cgroup.events"))
	if err != nil {
		return err
	}
	defer f.Close()
	for deadline := time.Now().Add(freezeWait); time.Now().Before(deadline); {
		events := make([]byte, 256)
		n, err := f.ReadAt(events, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if bytes.Contains(events[:n], []byte("frozen 1")) {
			return nil
		}
		changed := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(changed, int(freezeWait/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return errors.New("a process is in a call of the kernel that does not end")
}

// freezeWait bounds how long the kernel may take to stop everything.
const freezeWait = 30 * time.Second

// Remove removes the cgroup if it is empty.
func (g *Group) Remove() {
	if g == nil {
		return
	}
	if g.dir != nil {
		_ = g.dir.Close()
	}
	_ = os.Remove(g.path)
}

// ownCgroup returns the folder of this process's version 2 cgroup, or "".
func ownCgroup() string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return cgroupFolder(string(mounts), string(groups))
}

// cgroupFolder returns the folder of a process's version 2 cgroup, or "". mounts and groups are the
// process's mountinfo and cgroup files (proc_pid_mountinfo(5), cgroups(7)). Fields 3 and 4 of a mount are its
// root and its place: "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw".
func cgroupFolder(mounts, groups string) string {
	var own string
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = path
		}
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		separator := slices.Index(fields, "-")
		if separator < 5 || separator+1 >= len(fields) || fields[separator+1] != "cgroup2" {
			continue
		}
		below, contained := pathname.Below(fields[3], own)
		if own == "" || !contained {
			return ""
		}
		return filepath.Join(fields[4], below)
	}
	return ""
}
