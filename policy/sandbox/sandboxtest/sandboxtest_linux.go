// Package sandboxtest finds out which confinement a machine supports, for tests. It does not use package
// sandbox, so that a broken sandbox does not skip tests.
package sandboxtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"

	"golang.org/x/sys/unix"
)

// SkipUnlessOffered skips a test that could not open a sandbox of a level. It fails the test if the
// machine supports the level.
func SkipUnlessOffered(t testing.TB, level string, err error) {
	t.Helper()
	if offered(level) {
		t.Fatalf("this machine offers what the level %s is made of, and the sandbox does not take it: %v", level, err)
	}
	t.Skipf("this machine does not offer what the level %s is made of: %v", level, err)
}

// offered reports whether the machine supports a level. An empty level means any confinement.
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

// namespaces reports whether mount(8) can mount in new namespaces, and the kernel supports mount
// attributes.
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

// mountAttributes reports whether mount_setattr(2) exists (Linux 5.12). The kernel checks the
// argument's size first, so a wrong size distinguishes it from a filter or an older kernel.
func mountAttributes() bool {
	const wrongSize = 0
	_, _, errno := unix.Syscall6(unix.SYS_MOUNT_SETATTR, 0, 0, 0, 0, wrongSize, 0)
	return errno == unix.EINVAL
}

// landlock returns the ABI version of landlock_create_ruleset(2), or 0.
func landlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// Nobody is the number of a user who owns no other files.
const Nobody = 65534

// Users returns the users available to a test by name: for root, also another one.
func Users(t testing.TB) map[string]int {
	t.Helper()
	if os.Getuid() == 0 && os.Lchown(t.TempDir(), Nobody, Nobody) == nil { // a user namespace may map no other user
		return map[string]int{"root": 0, "nobody": Nobody}
	}
	return map[string]int{"user": os.Getuid()}
}

// Give makes the user the owner of base and everything below it.
func Give(t testing.TB, base string, user int) {
	t.Helper()
	if user == os.Getuid() {
		return
	}
	err := filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, user, user)
	})
	must.Do(t, err)
}

// Place returns a folder that commands see unchanged: outside /tmp.
func Place(t testing.TB, remove func(string) error) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	work, _ := os.Getwd()
	for _, parent := range []string{"/srv", "/var/lib", home, work} {
		if strings.HasPrefix(parent, "/tmp/") || strings.HasPrefix(parent, "/var/tmp/") {
			continue
		}
		dir, err := os.MkdirTemp(parent, "agent-ci-sandbox-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			must.Is(t, nil, remove(dir))
		})
		must.Do(t, os.Chmod(dir, 0o755))
		return dir
	}
	t.Skip("needs a folder to write to that is not below /tmp")
	return ""
}

// AsNobody reruns the test as Nobody if this process belongs to root. It reports whether this process
// already belongs to an ordinary user.
func AsNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	dir := folderFor(t, Nobody)
	defer os.RemoveAll(dir)
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return false
}

// folderFor makes a user's folder below a reachable temporary folder, since TMPDIR may be closed.
func folderFor(t testing.TB, user int) string {
	t.Helper()
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp", "/srv"} {
		if !reachable(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, "agent-ci-test-")
		if err != nil {
			continue
		}
		must.Do(t, os.Chown(dir, user, user))
		return dir
	}
	t.Skip("needs a folder for temporary files that others reach")
	return ""
}

// reachable reports whether every user may enter all folders of the path.
func reachable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&0o001 != 0 && (dir == "/" || reachable(filepath.Dir(dir)))
}
