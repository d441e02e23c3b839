package tree_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

const (
	unprivileged = 65534
	unchanged    = ^uintptr(0)
)

// asUser runs do as another user, in what the kernel checks alone or in what the
// process believes as well.
func asUser(t *testing.T, call uintptr, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser may become another user")
	}
	if err := os.Lchown(t.TempDir(), unprivileged, -1); err != nil {
		t.Skipf("there is no other user in this namespace of users: %v", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(user uintptr) {
		args := [3]uintptr{unchanged, user, unchanged}
		if call == syscall.SYS_SETFSUID {
			args = [3]uintptr{user}
		}
		if _, _, errno := syscall.RawSyscall(call, args[0], args[1], args[2]); errno != 0 {
			t.Fatal(errno)
		}
	}
	become(unprivileged)
	defer become(0)
	do()
}

// A sticky directory lets everyone link another's file and nobody rename it, or
// remove the link.
func TestCommitRestoresStickyDirectory(t *testing.T) {
	calls := map[string]uintptr{"known": syscall.SYS_SETRESUID, "a surprise": syscall.SYS_SETFSUID}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tree")
			before := folder{"f": "x\n"}
			before.write(t, dir)
			for name, mode := range map[string]fs.FileMode{"..": 0o777, ".": 0o777 | fs.ModeSticky, "f": 0o666} {
				must.Do(t, os.Chmod(filepath.Join(dir, name), mode))
			}
			plan := planned(t, dir, "*** Update File: f\n@@\n-x\n+y\n")
			var err error
			asUser(t, call, func() { err = plan.Commit(t.Context()) })
			failed, ok := errors.AsType[*tree.CommitError](err)
			if !ok || !errors.Is(err, fs.ErrPermission) || len(failed.Unrestored) > 0 {
				t.Fatalf("error = %v", err)
			}
			after := readTree(t, dir)
			for _, left := range failed.Leftover {
				name, _, _ := strings.Cut(left, " ")
				delete(after, name)
			}
			if name == "known" && len(failed.Leftover) > 0 {
				t.Errorf("left behind: %v", failed.Leftover)
			}
			must.Same(t, before, after, err)
		})
	}
}
