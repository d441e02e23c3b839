package grants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// mountsOf are the mounts of a plan, by their paths.
func mountsOf(t *testing.T, f Folders) map[string]stage.Mount {
	t.Helper()
	p := must.Get(NewPlan(f))(t)
	all := make(map[string]stage.Mount)
	for _, m := range p.Mounts() {
		for path := range all {
			must.Same(t, false, pathname.IsInAny(path, m.Path), path, "is mounted before", m.Path)
		}
		all[m.Path] = m
	}
	return all
}

// held has a workspace hold some of its files and some of the user's.
type held outside.Restrictions

func (h held) Restrictions(_, _ []string) (outside.Restrictions, error) {
	return outside.Restrictions(h), nil
}

func wantKinds(t *testing.T, mounts map[string]stage.Mount, want map[string]stage.MountKind) {
	t.Helper()
	got := make(map[string]stage.MountKind)
	for path := range want {
		got[path] = mounts[path].Kind
	}
	must.Same(t, want, got)
}

func TestModeDecidesWorkspaceMount(t *testing.T) {
	base, f := folders(t, map[string]string{"extra/file": "x"})
	f.Writable = []string{filepath.Join(base, "extra")}
	for mode, want := range map[Mode]map[string]stage.MountKind{
		WorkspaceWrite: {f.Workspace: stage.Writable, f.Writable[0]: stage.Writable, f.Home: stage.Overlay, "/tmp": stage.Writable},
		ReadOnly:       {f.Workspace: stage.Readable, f.Writable[0]: "", f.Home: stage.Overlay, "/tmp": stage.Writable},
	} {
		f.Mode = mode
		mounts := mountsOf(t, f)
		wantKinds(t, mounts, want)
		must.Same(t, filepath.Join(f.Scratch, "tmp"), mounts["/tmp"].Source, mode)
	}
}

func TestMountsApplyRestrictions(t *testing.T) {
	_, f := folders(t, map[string]string{"workspace/kept/settings": "token = x\n", "workspace/kept/other": "x", "home/settings": "token = y\n", "workspace/store": "z"})
	settings, user, store := filepath.Join(f.Workspace, "kept/settings"), filepath.Join(f.Home, "settings"), filepath.Join(f.Workspace, "store")
	f.Outside = held{
		ReadOnly: []string{filepath.Join(f.Workspace, "kept")}, Secret: []string{store, filepath.Join(f.Workspace, "missing")},
		Cleaned: map[string][]byte{settings: []byte("token\n")}, UserCleaned: map[string][]byte{user: []byte("user\n"), filepath.Join(f.Home, "missing"): nil},
	}
	mounts := mountsOf(t, f)
	wantKinds(t, mounts, map[string]stage.MountKind{
		filepath.Join(f.Workspace, "kept"): stage.Readable, settings: stage.Readable, user: stage.Readable, store: stage.Hidden,
		filepath.Join(f.Home, "missing"): "", filepath.Join(f.Workspace, "missing"): "",
	})
	for path, want := range map[string]string{settings: "token\n", user: "user\n"} {
		if got, err := os.ReadFile(mounts[path].Source); err != nil || string(got) != want {
			t.Errorf("at %s commands read %q, %v", path, got, err)
		}
	}
}

func TestBorrowedFoldersOmitHiddenPaths(t *testing.T) {
	base, f := folders(t, map[string]string{"store/a": "x", "store/deep/secret": "x", "store/list": "x", "workspace/place/empty": ""})
	store, place := filepath.Join(base, "store"), filepath.Join(f.Workspace, "place")
	f.BorrowedFolders, f.NotBorrowed, f.DenyRead = map[string]string{place: store}, []string{"list", "missing"}, []string{filepath.Join(store, "deep")}
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{
		store: stage.Readable, place: stage.Readable, filepath.Join(place, "list"): stage.Hidden, filepath.Join(place, "missing"): "",
		filepath.Join(store, "list"): "", filepath.Join(store, "deep"): stage.Hidden, filepath.Join(place, "deep"): stage.Hidden,
	})
	f.DenyRead = []string{store}
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{place: ""})
	f.DenyRead, f.BorrowedFolders = nil, map[string]string{filepath.Join(base, "home"): store}
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{store: ""})
}

func TestSecondPathShowsWorkspace(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/secret": "x", "twin/secret": "x", "twin/other": "x"})
	f.SecondPath = filepath.Join(base, "twin")
	f.DenyRead = []string{filepath.Join(f.Workspace, "secret")}
	f.Readable = []string{filepath.Join(f.SecondPath, "other")}
	mounts := mountsOf(t, f)
	wantKinds(t, mounts, map[string]stage.MountKind{
		f.Workspace: stage.Writable, f.SecondPath: stage.Writable, filepath.Join(f.SecondPath, "other"): "", filepath.Join(f.Workspace, "secret"): stage.Hidden,
	})
	must.Same(t, f.Workspace, mounts[f.SecondPath].Source, "the twin shows")
	f.SecondPath = base // which holds the workspace
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{base: ""})
}

func TestHomeIsOverlayByDefault(t *testing.T) {
	base, f := folders(t, map[string]string{"first/home/upper/tool": "x"})
	f.EarlierScratch = []string{filepath.Join(base, "first"), filepath.Join(base, "missing")}
	mount := mountsOf(t, f)[f.Home]
	want := stage.Mount{Kind: stage.Overlay, Path: f.Home, Source: filepath.Join(f.Scratch, "home"), Frozen: []string{filepath.Join(base, "first/home")}, Optional: true}
	must.Same(t, want, mount)
	must.Write(t, filepath.Join(f.Home, "run/first/home/upper/tool"), "x")
	f.EarlierScratch = []string{filepath.Join(f.Home, "run/first")} // which the kernel refuses as a layer beside the folder that it lies in
	want.Below, want.Frozen = []string{filepath.Join(f.Home, "run/first/home")}, nil
	must.Same(t, want, mountsOf(t, f)[f.Home])
	f.EarlierScratch = nil
	f.Writable = []string{f.Home}
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{f.Home: stage.Writable})
	f.Writable, f.DenyRead = nil, []string{f.Home}
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{f.Home: ""})
	f.DenyRead, f.Home = nil, os.DevNull // of accounts without one
	if mountsOf(t, f)[f.Home].Kind == stage.Overlay {
		t.Error("a device is laid over")
	}
}

// What is hidden in a folder that commands may write to stays where it is: the
// folders above are mounts, too.
func TestMountsParentsOfHiddenPaths(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/a/b/secret": "x", "workspace/a/c/file": "x", "unseen/secret": "x"})
	in := func(name string) string { return filepath.Join(f.Workspace, name) }
	f.DenyRead = []string{in("a/b/secret"), filepath.Join(base, "unseen/secret")}
	mounts := mountsOf(t, f)
	wantKinds(t, mounts, map[string]stage.MountKind{in("a/b/secret"): stage.Hidden, in("a/b"): stage.Writable, in("a"): stage.Writable, in("a/c"): ""})
	if !mounts[in("a/b/secret")].File || mounts[in("a/b")].File {
		t.Error("files and folders are mixed up")
	}
	if strings.HasPrefix(base, "/tmp/") { // where nothing of it is shown
		wantKinds(t, mounts, map[string]stage.MountKind{filepath.Join(base, "unseen/secret"): ""})
	}
}

func TestListsWritableMounts(t *testing.T) {
	got := WritableAmong([]stage.Mount{
		{Kind: stage.Writable, Path: "/w"}, {Kind: stage.Readable, Path: "/r"}, {Kind: stage.Hidden, Path: "/h"}, {Kind: stage.Overlay, Path: "/o"},
	})
	must.Same(t, []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/w", "/o"}, got)
}

// Secrets are hidden wherever the checkout and the user's folder are, also among folders
// that a sandbox has of its own.
func TestHidesSecretsBelowDevShm(t *testing.T) {
	shared, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		t.Skipf("there is no /dev/shm to write to: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shared) })
	t.Setenv("TMPDIR", shared)
	_, f := folders(t, map[string]string{"workspace/store": "x", "home/.netrc": "y"})
	store, netrc := filepath.Join(f.Workspace, "store"), filepath.Join(f.Home, ".netrc")
	beside := filepath.Join(shared, "beside")
	must.Write(t, beside, "z")
	f.Outside = held{Secret: []string{store, netrc, beside}}
	wantKinds(t, mountsOf(t, f), map[string]stage.MountKind{store: stage.Hidden, netrc: stage.Hidden, beside: ""})
}
