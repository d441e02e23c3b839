package sandboxtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Nobody is a user who owns nothing else.
const Nobody = 65534

// Users are those as whom a test can do what it does, by name: root and somebody
// else, where root runs it.
func Users(t testing.TB) map[string]int {
	t.Helper()
	if os.Getuid() == 0 && os.Lchown(t.TempDir(), Nobody, Nobody) == nil { // a namespace of users may have this one alone
		return map[string]int{"root": 0, "nobody": Nobody}
	}
	return map[string]int{"user": os.Getuid()}
}

// Give makes all below base the user's.
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
	if err != nil {
		t.Fatal(err)
	}
}

// Place is a folder that commands see as it is: not below /tmp.
func Place(t testing.TB, remove func(string) error) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	work, _ := os.Getwd()
	for _, parent := range []string{"/srv", "/var/lib", home, work} {
		dir, err := os.MkdirTemp(parent, "agent-ci-sandbox-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := remove(dir); err != nil {
				t.Error(err)
			}
		})
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Skip("needs a folder to write to that is not below /tmp")
	return ""
}

// AsNobody runs the test again as nobody where this process is root's, and says whether
// this is that run, or one of another ordinary user.
func AsNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	dir, err := os.MkdirTemp("", "nobody-")
	if err == nil {
		err = os.Chown(dir, Nobody, Nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return false
}
