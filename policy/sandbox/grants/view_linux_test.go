package grants

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// shows reads through a view as tools do; what is not shown is why in brackets.
func shows(v *View, path string) string {
	at, inside, err := v.Locate(path)
	if hidden := (*HiddenError)(nil); errors.As(err, &hidden) {
		return "(" + hidden.Reason + ")"
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return ""
	}
	defer root.Close()
	content, _ := root.ReadFile(inside)
	return string(content)
}

const (
	hiddenWords = "(" + whyHidden + ")"
	othersWords = "(" + whyOthers + ")"
	kernelWords = "(" + whyKernel + ")"
)

func wantShown(t *testing.T, v *View, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for path := range want {
		got[path] = shows(v, path)
	}
	must.Same(t, want, got)
}

// viewedFolders is the plan of a workspace with all that a view can differ in.
func viewedFolders(t *testing.T) (base string, p *Plan) {
	t.Helper()
	base, f := folders(t, map[string]string{
		"workspace/file": "work", "workspace/settings": "secret", "workspace/denied/file": "secret", "workspace/store": "secret",
		"home/file": "home", "home/settings": "secret", "home/changed": "old", "home/folder/old": "old",
		"scratch/tmp/own": "own", "scratch/home/upper/changed": "new", "scratch/home/upper/folder/new": "new", "first/home/upper/tool": "tool",
		"extra/file": "extra",
	})
	link(t, "denied/file", filepath.Join(f.Workspace, "link"))
	f.EarlierScratch, f.Writable, f.DenyRead = []string{filepath.Join(base, "first")}, []string{filepath.Join(base, "extra")}, []string{filepath.Join(f.Workspace, "denied")}
	f.Outside = held{
		ReadOnly: []string{filepath.Join(f.Workspace, "settings")}, Secret: []string{filepath.Join(f.Workspace, "store")},
		Cleaned:     map[string][]byte{filepath.Join(f.Workspace, "settings"): []byte("cleaned")},
		UserCleaned: map[string][]byte{filepath.Join(f.Home, "settings"): []byte("user")},
	}
	p = must.Get(NewPlan(f))(t)
	return base, p
}

func TestViewMatchesNamespaces(t *testing.T) {
	base, p := viewedFolders(t)
	in := func(name string) string { return filepath.Join(base, name) }
	v := p.View()
	wantShown(t, v, map[string]string{
		"/tmp/own": "own", in("workspace/file"): "work", in("workspace/settings"): "cleaned", in("workspace/denied/file"): hiddenWords, in("workspace/store"): hiddenWords,
		in("home/file"): "home", in("home/settings"): "user", in("home/changed"): "new", in("home/folder/new"): "new", in("home/tool"): "tool",
		in("extra/file"): "extra", "/proc/version": kernelWords, "/run/x": kernelWords,
	})
	for path, want := range map[string]string{
		in("workspace/file"): "", in("workspace/denied/file"): whyHidden, in("workspace/settings"): whyOthers, in("scratch/tmp/own"): "", "/sys/kernel": whyKernel,
	} {
		must.Same(t, want, v.Hides(path), path)
	}
	must.Same(t, []string{"denied", "settings", "store"}, slices.Sorted(slices.Values(v.HiddenBelow(in("workspace")))))
}

func TestViewMatchesLandlock(t *testing.T) {
	base, p := viewedFolders(t)
	in := func(name string) string { return filepath.Join(base, name) }
	wantShown(t, p.LandlockView(), map[string]string{
		"/tmp/own": othersWords, in("scratch/tmp/own"): "own", in("workspace/file"): "work", in("workspace/denied/file"): hiddenWords,
		in("home/settings"): hiddenWords, in("extra/file"): "extra", "/dev/null": kernelWords,
	})
}

func TestViewShowsUnconfinedFiles(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/file": "work", "home/.netrc": "secret", "elsewhere/file": "else"})
	link(t, "elsewhere/file", filepath.Join(base, "link"))
	wantShown(t, f.Unconfined(), map[string]string{
		filepath.Join(base, "workspace/file"): "work", filepath.Join(base, "home/.netrc"): "secret", filepath.Join(base, "link"): "else", "/proc/version": kernelWords,
	})
	f.Workspace = "/dev/shm"
	if got := f.Unconfined().entryFor("/dev/shm/file"); !got.visible {
		t.Errorf("a workspace in a folder of the kernel's is not shown: %s", got.reason)
	}
}

// What is hidden is so under each name that it has, and when it was opened already.
func TestViewIdentifiesFilesByInode(t *testing.T) {
	base, f := folders(t, map[string]string{"workspace/secret": "x", "workspace/file": "x"})
	must.Do(t, os.Link(filepath.Join(base, "workspace/secret"), filepath.Join(base, "workspace/second")))
	f.DenyRead = []string{filepath.Join(base, "workspace/secret")}
	p := must.Get(NewPlan(f))(t)
	v := p.View()
	for name, want := range map[string]string{"workspace/second": whyHidden, "workspace/secret": whyHidden, "workspace/file": ""} {
		file := must.Get(os.Open(filepath.Join(base, name)))(t)
		must.Same(t, want, v.HidesFile(file), name)
		file.Close()
	}
	var none *View
	if none.Hides("/etc/shadow") != "" || none.HidesID(1, 1) || none.HiddenBelow("/") != nil {
		t.Error("a view of nothing hides something")
	}
}
