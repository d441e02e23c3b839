package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// processGroup is a cgroup of a sandbox's own that limits how many processes
// there are in it (cgroups(7), pids.max).
type processGroup struct {
	path string
	dir  *os.File
}

// newProcessGroup makes one where the hierarchy of version 2 lets this user:
// below the cgroup that it is in, or beside it. It gives nil where there is
// none to be had; another limit has to do then.
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

// limitedGroup makes a cgroup in a folder that hands pids on to its children.
// That setting is left as it is: it is somebody else's, and a cgroup with
// processes in it refuses a change.
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
	limit, err := os.OpenFile(filepath.Join(path, "pids.max"), os.O_WRONLY, 0)
	if err == nil {
		_, err = limit.WriteString(strconv.Itoa(most))
		_ = limit.Close()
	}
	if err == nil {
		g.dir, err = os.Open(path)
	}
	if err != nil {
		g.remove()
		return nil
	}
	return g
}

// remove takes the cgroup away, which the kernel does once it is empty.
func (g *processGroup) remove() {
	if g == nil {
		return
	}
	if g.dir != nil {
		_ = g.dir.Close()
	}
	_ = os.Remove(g.path)
}

// ownCgroup is the folder of the cgroup of version 2 that this process is in,
// empty when it can't be seen.
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
		below, err := filepath.Rel(fields[3], own)
		if own == "" || err != nil || !filepath.IsLocal(below) {
			return ""
		}
		return filepath.Join(fields[4], below)
	}
	return ""
}

// The names of what limits processes, as layers tell it.
const (
	limitByCgroup = "pids.max of a cgroup"
	limitByPIDMax = "pid_max"
	limitByUser   = "RLIMIT_NPROC"
)

// processLimit says in words what limits processes, for the record.
func processLimit(most int, by string) string {
	words := fmt.Sprintf("at most %d processes (%s)", most, by)
	if by == limitByUser && os.Geteuid() == 0 {
		words = fmt.Sprintf("processes not limited (%s does not bind user 0)", by)
	}
	return words
}
