package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestCgroupFolder(t *testing.T) {
	const mounts = "24 1 0:22 / /proc rw - proc proc rw\n31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	const hybrid = "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const container = "31 24 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ name, mounts, groups, want string }{
		{"of a service", mounts, "0::/system.slice/runner.service\n", "/sys/fs/cgroup/system.slice/runner.service"},
		{"the root", mounts, "0::/\n", "/sys/fs/cgroup"},
		{"beside version 1", hybrid, "8:pids:/x\n0::/y\n", "/sys/fs/cgroup/unified/y"},
		{"in a container without its namespace", container, "0::/docker/abc/job\n", "/sys/fs/cgroup/job"},
		{"elsewhere than what is mounted", container, "0::/docker/other\n", ""},
		{"version 1 alone", "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", "8:pids:/x\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Same(t, c.want, cgroupFolder(c.mounts, c.groups))
		})
	}
}

func TestCgroupRequiresPidsController(t *testing.T) {
	parent := t.TempDir()
	if g := newGroupIn(parent, 100); g != nil {
		t.Error("a folder that is no cgroup gives a group")
	}
	must.Do(t, os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("cpu memory\n"), 0o600))
	if g := newGroupIn(parent, 100); g != nil {
		t.Error("a cgroup that keeps pids to itself gives a group")
	}
	must.Do(t, os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("cpu pids\n"), 0o600))
	if g := newGroupIn(parent, 100); g != nil { // the kernel makes pids.max; a plain folder has none
		t.Error("a group without pids.max is taken for one with a limit")
	}
	must.None(t, must.Get(filepath.Glob(filepath.Join(parent, "agent-ci-*")))(t), "a group that was of no use is left")
}
