// Package sandboxtest owns how tests find out what a machine has to confine
// commands with. It does not ask package sandbox: a test that is skipped where
// there is nothing must not be skipped because the sandbox is broken.
package sandboxtest

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// SkipUnlessOffered skips a test that could not open a sandbox of a level, by
// its name, and fails it where the machine offers what the level is made of.
func SkipUnlessOffered(t testing.TB, level string, err error) {
	t.Helper()
	if offered(level) {
		t.Fatalf("this machine offers what the level %s is made of, and the sandbox does not take it: %v", level, err)
	}
	t.Skipf("this machine does not offer what the level %s is made of: %v", level, err)
}

func offered(level string) bool {
	switch level {
	case "full":
		return namespaces() && landlock() > 0
	case "namespaces":
		return namespaces()
	case "landlock":
		return landlock() >= 3
	}
	return namespaces() || landlock() >= 3
}

// namespaces says whether mount(8) can mount in namespaces of its own, and the
// kernel knows the attributes of mounts besides.
var namespaces = sync.OnceValue(func() bool {
	if !mountAttributes() {
		return false
	}
	cmd := exec.Command("sh", "-c", "mount -t tmpfs none /tmp && mount -t proc none /proc")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return cmd.Run() == nil
})

// mountAttributes says whether there is mount_setattr(2) (Linux 5.12). The size
// of its argument is looked at before the caller's rights are: a wrong one is an
// answer of the call itself, not of a filter or of a kernel without it.
func mountAttributes() bool {
	const wrongSize = 0
	_, _, errno := unix.Syscall6(unix.SYS_MOUNT_SETATTR, 0, 0, 0, 0, wrongSize, 0)
	return errno == unix.EINVAL
}

// landlock is the ABI version of landlock_create_ruleset(2), 0 where there is
// none.
func landlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}
