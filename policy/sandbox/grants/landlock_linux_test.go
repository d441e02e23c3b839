package grants

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

func grantsOf(t *testing.T, f Folders) (*Plan, *stage.Landlock) {
	t.Helper()
	p := must.Get(NewPlan(f))(t)
	l := must.Get(p.Landlock())(t)
	return p, l
}

func TestSiblingsCoverAllButDenied(t *testing.T) {
	base, _ := folders(t, map[string]string{"a/one": "x", "a/two/deep": "x", "a/two/other": "x", "b": "x"})
	link(t, "a", filepath.Join(base, "link"))
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(base, name))
		}
		return paths
	}
	for _, c := range []struct {
		name         string
		denied, want []string
	}{
		{"nothing", nil, []string{base}},
		{"what lies elsewhere", []string{"/elsewhere"}, []string{base}},
		{"all", []string{base}, nil},
		{"a file", in("b"), in("a", "home", "workspace")},
		{"deep in it", in("a/two/deep"), in("a/one", "a/two/other", "b", "home", "workspace")},
		{"what is not there", in("a/none"), in("a/one", "a/two", "b", "home", "workspace")},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Same(t, c.want, siblingsCovering(base, c.denied))
		})
	}
}

func TestLandlockGrantsOnlyPlannedPaths(t *testing.T) {
	base, f := folders(t, map[string]string{"store/a": "x", "store/secret": "x", "workspace/place/empty": "", "extra/file": "x", "home/settings": "x"})
	settings := filepath.Join(f.Home, "settings")
	f.Writable, f.DenyRead = []string{filepath.Join(base, "extra")}, []string{filepath.Join(base, "store/secret")}
	f.BorrowedFolders = map[string]string{filepath.Join(f.Workspace, "place"): filepath.Join(base, "store")}
	f.Outside = held{UserCleaned: map[string][]byte{settings: []byte("y")}, Variables: map[string]string{"SETTINGS": settings, "OTHER": "/dev/null"}}
	p, l := grantsOf(t, f)
	for path, want := range map[string]bool{
		f.Workspace: true, filepath.Join(base, "store/a"): true, filepath.Join(base, "store"): false, filepath.Join(base, "store/secret"): false,
		filepath.Join(f.Scratch, "copies"): true, settings: false, "/tmp": false, "/run": false, "/": false, "/usr": true,
	} {
		must.Same(t, want, slices.Contains(l.Read, path), path)
	}
	for path, want := range map[string]bool{f.Workspace: true, filepath.Join(base, "extra"): true, filepath.Join(f.Scratch, "tmp"): true, f.Home: false, "/tmp": false} {
		must.Same(t, want, slices.Contains(l.Write, path), path)
	}
	variables := p.LandlockVariables()
	for _, want := range []string{"TMPDIR=" + filepath.Join(f.Scratch, "tmp"), "SETTINGS=" + filepath.Join(f.Scratch, "copies/user-0"), "OTHER=/dev/null", "GOCACHE=" + filepath.Join(f.Scratch, "cache/go-build")} {
		must.Same(t, true, slices.Contains(variables, want), want, "is not among", variables)
	}
}

// The user's folder may be below one for temporary files, which commands do not see.
func TestHomeBelowTemporaryFolderIsReadable(t *testing.T) {
	for _, parent := range []string{"/tmp", "/var/tmp"} {
		t.Run(parent, func(t *testing.T) {
			home := must.Get(os.MkdirTemp(parent, "home-"))(t)
			t.Cleanup(func() { _ = os.RemoveAll(home) })
			must.Write(t, filepath.Join(home, ".gitconfig"), "settings")
			must.Write(t, filepath.Join(home, ".cache/go-build/a"), "cached")
			must.Write(t, filepath.Join(home, ".ssh/key"), "secret")
			_, f := folders(t, nil)
			f.Home, f.Commands = home, []string{"GOCACHE=" + filepath.Join(home, ".cache/go-build")}
			p, l := grantsOf(t, f)
			for name, want := range map[string]bool{".gitconfig": true, ".cache/go-build/a": true, ".ssh/key": false} {
				must.Same(t, want, pathname.IsInAny(filepath.Join(home, name), l.Read...), name)
			}
			if slices.Contains(l.Read, parent) || pathname.IsInAny(home, l.Write...) {
				t.Errorf("too much is granted: %q, %q", l.Read, l.Write)
			}
			for _, v := range []*View{p.LandlockView(), p.View()} {
				wantShown(t, v, map[string]string{
					filepath.Join(home, ".gitconfig"): "settings", filepath.Join(home, ".ssh/key"): hiddenWords,
				})
			}
		})
	}
}

func TestLandlockRefusesInseparableSecrets(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Folders)
		want   InseparableError // below WORKSPACE
	}{
		{"a secret in the workspace", func(f *Folders) { f.DenyRead = []string{filepath.Join(f.Workspace, "secret")} }, InseparableError{
			"WORKSPACE/secret lies in a folder that commands may read, and without namespaces it can't be kept from them", "Take it out of there",
		}},
		{"a file that is to be cleaned", func(f *Folders) {
			f.Outside = held{Cleaned: map[string][]byte{filepath.Join(f.Workspace, "secret"): nil}, Remedy: "Clean it"}
		}, InseparableError{"WORKSPACE/secret holds credentials, and without namespaces they can't be kept from commands", "Clean it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, f := folders(t, map[string]string{"workspace/secret": "x"})
			c.change(&f)
			p := must.Get(NewPlan(f))(t)
			_, err := p.Landlock()
			var got *InseparableError
			if !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			c.want.What = strings.ReplaceAll(c.want.What, "WORKSPACE", f.Workspace)
			must.Same(t, c.want, *got)
		})
	}
}
