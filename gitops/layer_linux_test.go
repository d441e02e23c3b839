package gitops_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// layered is a layer of a test.
type layered struct {
	gitops.Layer
	repo  // commands see it at Dir
	upper string
}

// layer mounts a layer above folders, the highest first.
func layer(t testing.TB, lower ...string) layered {
	t.Helper()
	dir := t.TempDir()
	o := gittest.Overlay{Lower: lower, Upper: filepath.Join(dir, "upper"), At: filepath.Join(dir, "tree")}
	l := layered{repo: repo{o.Hold(t)}, upper: o.Upper}
	for path, root := range map[string]**os.Root{l.Dir: &l.Tree, l.upper: &l.Upper} {
		var err error
		if *root, err = os.OpenRoot(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*root).Close() })
	}
	return l
}

// Whatever commands do, the change found in a layer is the one that is found where
// they do the same in a copy of the checkout.
func TestLayerChangesMatchCopy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { sameAsACopy(t, seed) })
	}
}

func TestUnprivilegedLayerChangesMatchCopy(t *testing.T) {
	t.Parallel()
	if sandboxtest.AsNobody(t) {
		for seed := range uint64(4) {
			sameAsACopy(t, 100+seed)
		}
	}
}

func sameAsACopy(t *testing.T, seed uint64) {
	r := newRepo(t)
	scribble(r, seed, 60)
	r.Remove(repositoriesBelow(r)...)
	r.Write(".gitignore", "*.log\nbuild/\n!build/kept\n")
	r.Git("add", "-A")
	if seed%2 == 0 {
		r.Git("add", "-f", "-A") // what is ignored is tracked, too
	}
	r.Git("commit", "-q", "-m", "seed")
	scribble(r, seed+1000, 10)
	r.Git("reset", "-q", "--hard")
	copied := at(t, filepath.Join(t.TempDir(), "copy"))
	if out, err := exec.Command("cp", "-a", r.Dir, copied.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := r.Files()

	c, ofCopy := r.open(), copied.open()
	snap := snapshot(t, c)
	setup := layer(t, r.Dir)
	for _, tree := range []repo{setup.repo, copied} {
		add(tree, seed+2000, 30)
	}
	must.Same(t, copied.Files(), setup.Files(), "the files once they are set up")
	wantDirty := must.Get(ofCopy.Snapshot(t.Context()))(t).Dirty()
	must.Same(t, wantDirty, must.Get(c.InLayer(setup.Layer).Snapshot(t.Context()))(t).Dirty(), "tracked files that setup changed")
	snap = must.Get(c.InLayer(setup.Layer).WithLayer(t.Context(), snap))(t)
	copySnap := must.Get(ofCopy.Snapshot(t.Context()))(t)

	l := layer(t, setup.upper, r.Dir)
	scribble(l.repo, seed+3000, 60)
	scribble(copied, seed+3000, 60)
	must.Same(t, copied.Files(), l.Files(), "the files")
	want, got := changes(t, ofCopy, copySnap), changes(t, c.InLayer(l.Layer), snap)
	// What setup did to tracked files is no part of the layer.
	drop := func(cs *gitops.ChangeSet) {
		cs.Files = slices.DeleteFunc(cs.Files, func(f changeset.File) bool { return slices.Contains(wantDirty, f.Path) })
	}
	drop(want)
	drop(got)
	must.Same(t, want.Files, got.Files, "changes")
	must.Same(t, want.Problems, got.Problems, "problems")
	if len(wantDirty) == 0 {
		must.Same(t, want.Tree, got.Tree, "tree")
	}
	must.Same(t, before, r.Files(), "the checkout")
	if testing.Verbose() {
		t.Logf("%d files changed, %d problems, %d tracked files changed by setup", len(got.Files), len(got.Problems), len(wantDirty))
	}
}

// repositoriesBelow are the .git of a work tree but its own.
func repositoriesBelow(r repo) []string {
	var found []string
	err := filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if d.Name() != ".git" {
			return err
		}
		if path != r.Path(".git") {
			found = append(found, strings.TrimPrefix(path, r.Dir+"/"))
		}
		return fs.SkipDir
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return found
}

// scribble does so many things to a work tree, by chance: the same things to the same
// tree for the same seed.
func scribble(r repo, seed uint64, steps int) {
	r.T.Helper()
	s := newScribbler(r, seed)
	s.some(steps, s.write, s.write, s.write, s.again, s.touch, s.chmod, s.remove, s.remove, s.folder, s.link, s.hardLink,
		s.move, s.move, s.fresh, s.swap, s.rules, s.repository)
}

// add is scribble as setup commands are expected to be: what they make hides nothing
// that is not tracked.
func add(r repo, seed uint64, steps int) {
	r.T.Helper()
	s := newScribbler(r, seed)
	s.some(steps, s.write, s.again, s.touch, s.chmod, s.folder, s.link, s.hardLink, s.repository)
}

func newScribbler(r repo, seed uint64) scribbler {
	s := scribbler{r, rand.New(rand.NewPCG(seed, 0)), []string{"one", "two", "x.log", "kept", "a", "a.b", "README"}}
	if seed >= 1000 {
		s.files = append(s.files, "git~1") // which no commit can have
	}
	return s
}

func (s scribbler) some(steps int, acts ...func(string)) {
	for range steps {
		acts[s.rand.IntN(len(acts))](s.name())
	}
}

type scribbler struct {
	repo
	rand  *rand.Rand
	files []string
}

// name is the path of anything, mostly of nothing yet.
func (s scribbler) name() string {
	folders := []string{"a", "b", "c", "build", "a.b"}
	var parts []string
	for range s.rand.IntN(4) {
		parts = append(parts, folders[s.rand.IntN(len(folders))])
	}
	return path.Join(append(parts, s.files[s.rand.IntN(len(s.files))])...)
}

// room makes the folders above a path; false where something else is in the way, and
// where a link leads elsewhere.
func (s scribbler) room(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(s.Path(dir)); err == nil && !info.IsDir() {
			return false
		}
	}
	return os.MkdirAll(filepath.Dir(s.Path(name)), 0o777) == nil
}

func (s scribbler) write(name string) {
	content := fmt.Sprintf("%d\n", s.rand.IntN(20))
	if s.room(name) {
		_ = os.WriteFile(s.Path(name), []byte(content), 0o666)
	}
}

// again writes what is there.
func (s scribbler) again(name string) {
	if data, err := os.ReadFile(s.Path(name)); err == nil {
		s.Remove(name)
		s.Write(name, string(data))
	}
}

func (s scribbler) touch(name string) { _ = os.Chtimes(s.Path(name), time.Time{}, time.Now()) }

func (s scribbler) chmod(name string) {
	if info, err := os.Lstat(s.Path(name)); err == nil && info.Mode().IsRegular() {
		s.Chmod(name, []fs.FileMode{0o644, 0o755}[s.rand.IntN(2)])
	}
}

func (s scribbler) remove(name string) {
	if s.rand.IntN(4) == 0 {
		name = path.Dir(name)
	}
	if name != "." {
		_ = os.RemoveAll(s.Path(name))
	}
}

func (s scribbler) folder(name string) { _ = os.MkdirAll(s.Path(name), 0o777) }

func (s scribbler) link(name string) {
	target := s.name()
	if s.room(name) {
		_ = os.Symlink(target, s.Path(name))
	}
}

func (s scribbler) hardLink(name string) {
	from := s.name()
	if info, err := os.Lstat(s.Path(from)); err == nil && info.Mode().IsRegular() && s.room(name) {
		_ = os.Link(s.Path(from), s.Path(name))
	}
}

// move is of a file or a folder: mv copies what rename(2) does not take.
func (s scribbler) move(name string) {
	to := s.name()
	if s.rand.IntN(2) == 0 {
		name = path.Dir(name)
	}
	_, err := os.Lstat(s.Path(to))
	if name == "." || !errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(to+"/", name+"/") || !s.room(to) {
		return
	}
	_ = exec.Command("mv", "-T", s.Path(name), s.Path(to)).Run()
}

// fresh puts a new folder in the place of what is there.
func (s scribbler) fresh(name string) {
	if s.room(name) {
		s.Remove(path.Dir(name) + "/" + path.Base(name))
		s.Write(name+"/inside", "i\n")
	}
}

// swap puts a file in the place of a folder.
func (s scribbler) swap(name string) {
	dir := path.Dir(name)
	if dir != "." && s.room(dir) {
		s.Remove(dir)
		s.Write(dir, "was a folder\n")
	}
}

func (s scribbler) rules(name string) {
	name = path.Join(path.Dir(name), []string{".gitignore", ".gitignore", ".gitattributes"}[s.rand.IntN(3)])
	text := []string{"*.log\n", "build\n", "one\n", "!x.log\n", "/a/\n", "", "* text eol=crlf\n", "* -text\n"}[s.rand.IntN(8)]
	if s.room(name) {
		_ = os.WriteFile(s.Path(name), []byte(text), 0o666)
	}
}

func (s scribbler) repository(name string) {
	if s.rand.IntN(3) == 0 && s.room(name) {
		if info, err := os.Lstat(s.Path(name)); err != nil || info.IsDir() {
			s.Git("init", "-q", name)
		}
	}
}

// A layer takes files of one owner: what another owns can't be changed in it.
func TestForeignFilesPreventLayer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	for name, test := range map[string]struct {
		gives []string // to another user
		want  string
	}{
		"nothing":                          {nil, ""},
		"an ignored folder":                {[]string{"build"}, `"build" belongs to user 7 and group 1000, not to 1000 and 1000`},
		"what lies in an ignored folder":   {[]string{"build/out"}, `"build/out" belongs`},
		"what lies further below":          {[]string{"build/deep/out"}, ""},
		"an untracked file":                {[]string{"a/b/mine"}, `"a/b/mine" belongs`},
		"an untracked link":                {[]string{"a/link"}, `"a/link" belongs`},
		"a folder with tracked files":      {[]string{"a/b"}, `"a/b" belongs`},
		"what lies in git's folder":        {[]string{".git/config"}, ""},
		"what lies in an untracked folder": {[]string{"more/mine"}, `"more/mine" belongs`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.Write(".gitignore", "/build/\n")
			r.Write("a/b/three", "3\n")
			r.Seed()
			for _, path := range []string{"build/out", "build/deep/out", "a/b/mine", "more/mine", "caf\xe9/mine"} {
				r.Write(path, "mine\n")
			}
			r.Link("b/mine", "a/link")
			c := r.open()
			const own, other = 1000, 7
			err := filepath.WalkDir(r.Dir, func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Lchown(path, own, own))
			})
			for _, path := range test.gives {
				err = errors.Join(err, os.Lchown(filepath.Join(r.Dir, path), other, own))
			}
			must.Do(t, err)
			if got, err := c.WhyNoLayer(t.Context(), own, own); err != nil || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
