package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// processGroup is a sandbox's own cgroup with a limit of processes (cgroups(7), pids.max).
type processGroup struct {
	path string
	dir  *os.File
}

// newProcessGroup makes a version 2 cgroup below this process's own or beside it. It returns nil if
// the user may not; another limit is used then.
func newProcessGroup(most int) *processGroup {
	own := ownCgroup()
	if own == "" {
		return nil
	}
	for _, parent := range []string{own, filepath.Dir(own)} {
		if g := limitedGroup(parent, most); g != nil {
			return g
		}
	}
	return nil
}

// limitedGroup makes a cgroup in a folder that delegates pids. It does not enable that: the setting
// belongs to others, and a cgroup with processes rejects it.
func limitedGroup(parent string, most int) *processGroup {
	handed, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	if err != nil || !slices.Contains(strings.Fields(string(handed)), "pids") {
		return nil
	}
	path, err := os.MkdirTemp(parent, "agent-ci-")
	if err != nil {
		return nil
	}
	g := &processGroup{path: path}
	if err = g.set("pids.max", strconv.Itoa(most)); err == nil {
		g.dir, err = os.Open(path)
	}
	if err != nil {
		g.remove()
		return nil
	}
	return g
}

// freeze stops everything in the cgroup unnoticed. It returns fs.ErrNotExist before Linux 5.2.
func (g *processGroup) freeze() error {
	if err := g.set("cgroup.freeze", "1"); err != nil {
		return err
	}
	err := g.awaitFrozen()
	if err != nil {
		err = errors.Join(err, g.thaw())
	}
	return err
}

func (g *processGroup) thaw() error { return g.set("cgroup.freeze", "0") }

// set writes one of the cgroup's files.
func (g *processGroup) set(name, value string) error {
	f, err := os.OpenFile(filepath.Join(g.path, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// awaitFrozen waits until everything has stopped.
func (g *processGroup) awaitFrozen() error {
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

// remove removes the cgroup, which is possible once it is empty.
func (g *processGroup) remove() {
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

// cgroupFolder finds the folder in the tables of proc_pid_mountinfo(5) and
// cgroups(7).
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
		below, is := pathname.Below(fields[3], own)
		if own == "" || !is {
			return ""
		}
		return filepath.Join(fields[4], below)
	}
	return ""
}

// Names of process limits, as in Layers.
const (
	limitByCgroup = "pids.max of a cgroup"
	limitByPIDMax = "pid_max"
	limitByUser   = "RLIMIT_NPROC"
)

// processLimit describes the process limit for the record.
func processLimit(most int, by string) string {
	words := fmt.Sprintf("at most %d processes (%s)", most, by)
	if by == limitByUser && os.Geteuid() == 0 {
		words = fmt.Sprintf("processes not limited (%s does not bind user 0)", by)
	}
	return words
}
