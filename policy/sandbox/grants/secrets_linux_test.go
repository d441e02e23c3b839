package grants

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// What is kept from commands is found by its own name, by links and by further
// names, in the folders that they may write to and in no others.
func TestFindSecrets(t *testing.T) {
	base, f := folders(t, map[string]string{
		"workspace/conf/cred": "x", "workspace/vault/inner": "x", "workspace/.netrc": "x", "workspace/plain": "x", "home/.netrc": "x", "elsewhere/cred": "x", "elsewhere/far": "x",
	})
	in := func(name string) string { return filepath.Join(base, name) }
	for second, first := range map[string]string{"workspace/second": "workspace/conf/cred", "workspace/third": "workspace/vault/inner", "workspace/fourth": "elsewhere/far"} {
		must.Do(t, os.Link(in(first), in(second)))
	}
	link(t, "conf", in("workspace/link"))
	f.DenyRead = []string{in("workspace/link/cred"), in("workspace/vault"), in("workspace/to-come"), in("elsewhere/cred")}
	f.Environ = []string{"NETRC=" + in("elsewhere/far"), "HOME=" + in("workspace")}
	found := must.Get(FindSecrets(t.Context(), f))(t)
	want := []Secret{
		{in("workspace/.netrc"), "", in("workspace/.netrc"), true},
		{in("workspace/conf/cred"), DeniedBy, in("workspace/link/cred"), true},
		{in("workspace/fourth"), "NETRC", in("elsewhere/far"), true},
		{in("workspace/link/cred"), DeniedBy, in("workspace/link/cred"), false},
		{in("workspace/second"), DeniedBy, in("workspace/link/cred"), true},
		{in("workspace/third"), "", in("workspace/vault"), true},
		{in("workspace/to-come"), DeniedBy, in("workspace/to-come"), false},
		{in("workspace/vault"), DeniedBy, in("workspace/vault"), true},
		{in("workspace/vault/inner"), "", in("workspace/vault"), true},
	}
	slices.SortFunc(found.Found, func(a, b Secret) int { return strings.Compare(a.Path, b.Path) })
	must.Same(t, want, found.Found)
	must.Same(t, []string{f.Workspace}, found.Within)
}

// A plan that is given secrets hides them as they were found, whatever stands at
// the paths by now.
func TestPlanKeepsFoundSecrets(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/was": "x", "workspace/later": "x", "outside": "x"})
	in := func(name string) string { return filepath.Join(base, name) }
	f.DenyRead = []string{in("workspace/later"), in("outside")}
	f.Secrets = &Secrets{Within: []string{f.Workspace}, Found: []Secret{{Path: in("workspace/was"), Existed: true}, {Path: in("workspace/gone"), Existed: true}}}
	p := must.Get(NewPlan(f))(t)
	for path, want := range map[string]bool{in("workspace/was"): true, in("outside"): true, in("workspace/later"): false, in("workspace/gone"): false} {
		must.Same(t, want, slices.Contains(p.hidden, path), path)
	}
}

// A sandbox of somebody else hides the agent's workspace as a whole, in which secrets were found before.
func TestHidesForeignWorkspace(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/was": "x", "workspace/later": "x", "empty/x": "x"})
	workspace := f.Workspace
	f.Secrets = &Secrets{Within: []string{workspace}, Found: []Secret{}}
	f.Workspace, f.DenyRead = filepath.Join(base, "empty"), []string{workspace, filepath.Join(workspace, "later")}
	p := must.Get(NewPlan(f))(t)
	must.Same(t, true, slices.Contains(p.hidden, workspace), "hidden are", p.hidden)
}

func TestFindSecretsEndsWithContext(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/cred": "x"})
	must.Do(t, os.Link(filepath.Join(base, "workspace/cred"), filepath.Join(base, "workspace/second")))
	f.DenyRead = []string{filepath.Join(base, "workspace/cred")}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, must.Err(FindSecrets(ctx, f)))
}

// Whoever owns a folder can lock it and open it again: what is hidden in it is so
// before the first command, and after one that locked it.
func TestLockedFoldersKeepSecretsHidden(t *testing.T) {
	base := sandboxtest.Place(t, os.RemoveAll)
	workspace := filepath.Join(base, "workspace")
	must.Write(t, filepath.Join(workspace, "conf/deep/cred"), "secret")
	must.Write(t, filepath.Join(workspace, "open/cred"), "secret")
	must.Do(t, os.Symlink("conf/deep/cred", filepath.Join(workspace, "link")))
	conf, open := filepath.Join(workspace, "conf"), filepath.Join(workspace, "open")
	must.Do(t, os.Chmod(conf, 0))
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
			must.Same(t, false, pathname.IsInAny(p.home, p.hidden...), "the home folder", p.home, "is shown, which is hidden")
			for _, path := range []string{filepath.Join(conf, "deep/cred"), filepath.Join(open, "cred")} {
				must.Same(t, true, pathname.IsInAny(path, p.hidden...), path, "is not below what is hidden", p.hidden)
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
	must.Do(t, <-ended)
}
