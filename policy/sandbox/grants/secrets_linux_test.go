package grants

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// Whoever owns a folder can lock it and open it again: what is hidden in it is so
// before the first command, and after one that locked it.
func TestWhatIsHiddenStaysHiddenInALockedFolder(t *testing.T) {
	base := sandboxtest.Place(t, os.RemoveAll)
	workspace := filepath.Join(base, "workspace")
	put(t, filepath.Join(workspace, "conf/deep/cred"), "secret")
	put(t, filepath.Join(workspace, "open/cred"), "secret")
	if err := os.Symlink("conf/deep/cred", filepath.Join(workspace, "link")); err != nil {
		t.Fatal(err)
	}
	conf, open := filepath.Join(workspace, "conf"), filepath.Join(workspace, "open")
	if err := os.Chmod(conf, 0); err != nil {
		t.Fatal(err)
	}
	f := Folders{Mode: WorkspaceWrite, Workspace: workspace, Home: conf, Scratch: filepath.Join(base, "scratch"), DenyRead: []string{filepath.Join(workspace, "link"), filepath.Join(open, "cred")}}
	sandboxtest.Give(t, base, ordinaryUser())
	asOrdinaryUser(t, func() error {
		found, err := FindSecrets(t.Context(), f)
		if err != nil {
			return err
		}
		f.Secrets = found
		for range 2 {
			p, err := NewPlan(f)
			if err != nil {
				return err
			}
			if within(p.home, p.hidden) {
				t.Errorf("the home folder %s is shown, which is hidden", p.home)
			}
			for _, path := range []string{filepath.Join(conf, "deep/cred"), filepath.Join(open, "cred")} {
				if !within(path, p.hidden) {
					t.Errorf("%s is not below what is hidden: %q", path, p.hidden)
				}
			}
			if err := errors.Join(os.Chmod(conf, 0o755), os.Chmod(open, 0)); err != nil {
				return err
			}
		}
		return os.Chmod(open, 0o755)
	})
}

func ordinaryUser() int {
	if user := os.Getuid(); user != 0 {
		return user
	}
	return sandboxtest.Nobody
}

// asOrdinaryUser has f done by a thread that has no rights of user 0, and that ends
// with it.
func asOrdinaryUser(t *testing.T, f func() error) {
	t.Helper()
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		if user := ordinaryUser(); user != os.Geteuid() {
			if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(user), ^uintptr(0)); err != 0 {
				ended <- err
				return
			}
		}
		ended <- f()
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
