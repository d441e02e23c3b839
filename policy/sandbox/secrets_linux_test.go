package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// What was hidden before the first command is so in each later sandbox, whatever
// commands make of the links and folders that led to it.
func TestWhatIsHiddenStaysHidden(t *testing.T) {
	for _, tier := range []string{"full", "namespaces"} {
		t.Run(tier, func(t *testing.T) {
			requireTier(t, tier)
			o := withHidden(t, tier)
			first := openOne(t, o)
			run(t, first, o, `
				for way in "mv conf conf2" "mv conf/deep away" "rm -f conf/deep/cred" "rm -f second" "mv pub else" "mv vault else"; do if $way 2>/dev/null; then echo "done: $way" >&2; exit 1; fi; done
				rm link; mkdir pub/deep; echo public >pub/deep/cred; ln -s pub link
				mkdir made; ln -s ../script made/cred; ln -s /bin/sh tool`)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			o.Scratch = filepath.Join(filepath.Dir(o.Workspace), "later")
			later := openOne(t, o)
			if got := run(t, later, o, `cat conf/deep/cred second pub/third; cat link/deep/cred; cat script made/cred; test -s /bin/sh`); got != "public\nneeded\nneeded\n" {
				t.Errorf("commands read %q", got)
			}
			view, err := NewView(o, later.Level())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"conf/deep/cred", "second", "pub/third", "vault/inner", "made/cred"} {
				if view.Hides(filepath.Join(o.Workspace, name)) == "" {
					t.Errorf("the view shows %s", name)
				}
			}
			for name, want := range map[string]bool{"conf/deep/cred": true, "second": true, "script": false} {
				file, err := os.Open(filepath.Join(o.Workspace, name))
				if err != nil {
					t.Fatal(err)
				}
				if hidden := view.HidesFile(file) != ""; hidden != want {
					t.Errorf("%s: the open file is hidden: %t", name, hidden)
				}
				file.Close()
			}
		})
	}
}

// Whoever owns a folder can lock it and open it again: what is hidden in it is so
// before the first command, and after one that locked it.
func TestWhatIsHiddenStaysHiddenInALockedFolder(t *testing.T) {
	base := place(t)
	workspace := filepath.Join(base, "workspace")
	put(t, filepath.Join(workspace, "conf/deep/cred"), secret, 0o644)
	put(t, filepath.Join(workspace, "open/cred"), secret, 0o644)
	if err := os.Symlink("conf/deep/cred", filepath.Join(workspace, "link")); err != nil {
		t.Fatal(err)
	}
	conf, open := filepath.Join(workspace, "conf"), filepath.Join(workspace, "open")
	if err := os.Chmod(conf, 0); err != nil {
		t.Fatal(err)
	}
	o := Options{Mode: WorkspaceWrite, Workspace: workspace, Home: conf, Scratch: filepath.Join(base, "scratch"), DenyRead: []string{filepath.Join(workspace, "link"), filepath.Join(open, "cred")}}
	sandboxtest.Give(t, base, ordinaryUser())
	asOrdinaryUser(t, func() error {
		found, err := FindSecrets(t.Context(), o)
		if err != nil {
			return err
		}
		o.Secrets = found
		for range 2 {
			p, err := newPlan(o)
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

// withHidden are options of a workspace that a link leads through to a hidden
// file, which has more names.
func withHidden(t *testing.T, tier string) Options {
	t.Helper()
	base := place(t)
	workspace := filepath.Join(base, "workspace")
	put(t, filepath.Join(workspace, "conf/deep/cred"), secret, 0o644)
	put(t, filepath.Join(workspace, "script"), "needed\n", 0o644)
	put(t, filepath.Join(workspace, "vault/inner"), secret, 0o644)
	for second, first := range map[string]string{"second": "conf/deep/cred", "pub/third": "vault/inner"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(workspace, second)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(workspace, first), filepath.Join(workspace, second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("conf", filepath.Join(workspace, "link")); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Mode: WorkspaceWrite, Network: NetworkNone, Workspace: workspace, Scratch: filepath.Join(base, "scratch"), Home: base, without: tiers[tier],
		DenyRead: []string{filepath.Join(workspace, "link/deep/cred"), filepath.Join(workspace, "made/cred"), filepath.Join(workspace, "tool"), filepath.Join(workspace, "vault")},
	}
	found, err := FindSecrets(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Secrets = found
	return o
}

func openOne(t *testing.T, o Options) *Sandbox {
	t.Helper()
	box, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	return box
}

// A folder above the workspace that commands may write to does not take it away.
func TestTheWorkspaceStaysWhereItIs(t *testing.T) {
	for _, tier := range []string{"full", "namespaces"} {
		t.Run(tier, func(t *testing.T) {
			requireTier(t, tier)
			base := place(t)
			o := Options{Mode: WorkspaceWrite, Network: NetworkNone, Workspace: filepath.Join(base, "over/src/work"), Scratch: filepath.Join(base, "scratch"), Writable: []string{filepath.Join(base, "over")}, without: tiers[tier]}
			put(t, filepath.Join(o.Workspace, "file"), "x", 0o644)
			box := openOne(t, o)
			run(t, box, o, `cd ..; for way in "mv ../src ../other" "mv work other"; do if $way 2>/dev/null; then echo "done: $way" >&2; exit 1; fi; done; touch ../made made`)
		})
	}
}

// Without namespaces nothing starts once setup has made what is to be hidden.
func TestLandlockRefusesWhatComesToBeHidden(t *testing.T) {
	box, o := confined(t, "landlock", nil)
	o.DenyRead = []string{filepath.Join(o.Workspace, "made")}
	run(t, box, o, "echo secret >made")
	found, err := FindSecrets(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Secrets, o.Scratch = found, t.TempDir()
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "it can't be kept from them") {
		t.Errorf("it is opened: %v", err)
	}
}
