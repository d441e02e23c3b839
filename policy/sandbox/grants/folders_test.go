package grants

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// folders are those of a workspace, a home folder and a scratch folder, links
// resolved, with files by their paths below all of them.
func folders(t *testing.T, files map[string]string) (base string, f Folders) {
	t.Helper()
	base = must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, content := range files {
		must.Write(t, filepath.Join(base, name), content)
	}
	for _, name := range []string{"workspace", "home"} {
		must.Do(t, os.MkdirAll(filepath.Join(base, name), 0o755))
	}
	return base, Folders{
		Mode: WorkspaceWrite, Workspace: filepath.Join(base, "workspace"), Home: filepath.Join(base, "home"), Scratch: filepath.Join(base, "scratch"),
	}
}

func link(t *testing.T, to, from string) {
	t.Helper()
	must.Do(t, os.Symlink(to, from))
}

func TestCheckRequiresModeAndAbsolutePaths(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Folders)
		want   string // in the error; empty for none
	}{
		{"as they are", func(*Folders) {}, ""},
		{"no home folder", func(f *Folders) { f.Home = "" }, ""},
		{"no mode", func(f *Folders) { f.Mode = "" }, `sandbox mode "" is not known`},
		{"another mode", func(f *Folders) { f.Mode = "open" }, `sandbox mode "open" is not known`},
		{"no workspace", func(f *Folders) { f.Workspace = "" }, `path "" of a sandbox`},
		{"what is writable", func(f *Folders) { f.Writable = []string{"../w"} }, `path "../w" of a sandbox`},
		{"what is denied", func(f *Folders) { f.DenyRead = []string{"d"} }, `path "d" of a sandbox`},
		{"what is lent", func(f *Folders) { f.BorrowedFolders = map[string]string{"/place": "folder"} }, `path "folder" of a sandbox`},
		{"a place of what is lent", func(f *Folders) { f.BorrowedFolders = map[string]string{"place": "/folder"} }, `path "place" of a sandbox`},
		{"home folders of earlier sandboxes", func(f *Folders) { f.EarlierScratch = []string{"b"} }, `path "b" of a sandbox`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, f := folders(t, nil)
			c.change(&f)
			err := f.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestListsWritableFolders(t *testing.T) {
	base, f := folders(t, map[string]string{"real/file": "x"})
	link(t, "real", filepath.Join(base, "link"))
	f.Writable = []string{filepath.Join(base, "link"), filepath.Join(base, "missing")}
	in := func(name string) string { return filepath.Join(base, name) }
	given := []string{f.Workspace, in("link"), in("missing")}
	for _, c := range []struct {
		name string
		mode Mode
		got  func(Folders) []string
		want []string
	}{
		{"in namespaces", WorkspaceWrite, Folders.WritableInNamespaces, slices.Concat([]string{"/tmp", "/var/tmp", "/dev/shm", f.Home}, given, []string{in("real")})},
		{"by Landlock", WorkspaceWrite, Folders.WritableByLandlock, slices.Concat([]string{in("scratch/tmp"), in("scratch/cache")}, given, []string{in("real")})},
		{"nothing, in namespaces", ReadOnly, Folders.WritableInNamespaces, []string{"/tmp", "/var/tmp", "/dev/shm", f.Home}},
		{"nothing, by Landlock", ReadOnly, Folders.WritableByLandlock, []string{in("scratch/tmp"), in("scratch/cache")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.Mode = c.mode
			must.Same(t, c.want, c.got(f))
		})
	}
}

func TestPlanRefusesInvalidGrants(t *testing.T) {
	base, f := folders(t, map[string]string{"outside/file": "x", "workspace/inside/file": "x"})
	link(t, "../outside", filepath.Join(f.Workspace, "out"))
	link(t, "inside", filepath.Join(f.Workspace, "in"))
	link(t, "/", filepath.Join(base, "all"))
	for _, c := range []struct {
		name, writable string
		mode           Mode
		want           string // in the error; empty for none
	}{
		{"a link out of the workspace", filepath.Join(f.Workspace, "out"), WorkspaceWrite, "leads out of the workspace, to " + filepath.Join(base, "outside")},
		{"a link in the workspace", filepath.Join(f.Workspace, "in"), WorkspaceWrite, ""},
		{"a folder outside", filepath.Join(base, "outside"), WorkspaceWrite, ""},
		{"what is not there", filepath.Join(base, "missing"), WorkspaceWrite, ""},
		{"all of the machine", filepath.Join(base, "all"), WorkspaceWrite, "is the whole file system; use the mode danger-full-access instead"},
		{"what is not asked for", filepath.Join(base, "all"), ReadOnly, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.Writable, f.Mode = []string{c.writable}, c.mode
			_, err := NewPlan(f)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	f.Workspace = filepath.Join(base, "missing")
	if _, err := NewPlan(f); err == nil || !strings.HasPrefix(err.Error(), "find the workspace: ") {
		t.Errorf("a workspace that is not there: %v", err)
	}
}

// asked keeps what it is asked with.
type asked struct{ writable, homes []string }

func (a *asked) Restrictions(writable, homes []string) (outside.Restrictions, error) {
	*a = asked{writable, homes}
	return outside.Restrictions{}, os.ErrDeadlineExceeded
}

// What is held is asked of who knows it, with what commands may write to.
func TestRestrictionsGetWritableFolders(t *testing.T) {
	base, f := folders(t, map[string]string{"real/file": "x"})
	link(t, "real", filepath.Join(base, "link"))
	f.Writable = []string{filepath.Join(base, "link")}
	a := &asked{}
	f.Outside = a
	must.Is(t, os.ErrDeadlineExceeded, must.Err(NewPlan(f)))
	must.Same(t, []string{f.Workspace, filepath.Join(base, "real")}, a.writable)
	must.Same(t, true, slices.Contains(a.homes, f.Home), f.Home, "is not among the homes", a.homes)
}
