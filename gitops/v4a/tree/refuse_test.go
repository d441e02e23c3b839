package tree_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// hostile makes a tree with everything in it that a patch may not touch, and
// the neighbour of the tree that links lead to.
func hostile(t *testing.T) (dir, outside string) {
	t.Helper()
	parent := t.TempDir()
	dir, outside = filepath.Join(parent, "tree"), filepath.Join(parent, "outside")
	folder{"f": "x\n", "d/g": "y\n", "new": "n\n", ".git/config": "c\n", "sub/.git": "gitdir: x\n"}.write(t, dir)
	folder{"secret": "s\n", "d/g": "s\n"}.write(t, outside)
	for name, target := range map[string]string{
		"out": "../outside", "out-file": "../outside/secret", "absolute": outside,
		"git": ".git", "git-file": "d/../.git/config", "loop": "loop", "to-dir": "d", "d/up": "../../outside/secret",
	} {
		must.Do(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	return dir, outside
}

func TestRefusesInvalidPaths(t *testing.T) {
	paths := []string{
		"/etc/passwd", "..", "../f", "d/../../f", "a/../../tree/f", ".", "d/..", "d", "d/", "new/", "new/.", "f/x", "fifo", "fifo/x",
		".git", ".git/config", "d/../.git/config", "sub/.git", "x/.git/hooks/a", ".GIT/config", ".Git", ".git./config",
		".git /config", "git~1/config", "GIT~1", ".git::$INDEX_ALLOCATION/config", ".g\u200cit/config", "\ufeff.git/x",
		`d\.git\config`, `.git\config`, "a\x00b",
		"out/secret", "out/new", "out-file", "absolute/secret", "git/config", "git/hooks/new", "git-file", "loop", "loop/x",
		"to-dir", "d/up", "to-dir/up", strings.Repeat("n", 300),
	}
	operations := map[string]string{
		"add":        "*** Add File: PATH\n+x\n",
		"update":     "*** Update File: PATH\n@@\n-x\n+y\n",
		"delete":     "*** Delete File: PATH\n",
		"move there": "*** Update File: f\n*** Move to: PATH\n@@\n-x\n+y\n",
	}
	dir, outside := hostile(t)
	before, beforeOutside := readTree(t, dir), readTree(t, outside)
	for operation, section := range operations {
		for _, name := range paths {
			t.Run(operation+" "+name, func(t *testing.T) {
				text := "*** Add File: first\n+1\n" + strings.ReplaceAll(section, "PATH", name)
				err := apply(t, dir, text)
				bad, ok := errors.AsType[*tree.PathError](err)
				if !ok {
					t.Errorf("error = %v, want a PathError", err)
				} else if bad.Path != name || bad.Line == 0 {
					t.Errorf("error is about %q, line %d", bad.Path, bad.Line)
				}
			})
		}
	}
	for _, name := range paths {
		_, err := rewrite(t, dir, texts(folder{"first": "1\n", name: "x\n"}))
		if bad, ok := errors.AsType[*tree.PathError](err); !ok || bad.Path != name {
			t.Errorf("rewrite %s: %v", name, err)
		}
	}
	wantTree(t, dir, before)
	wantTree(t, outside, beforeOutside)
}

func TestRefusesImpossibleSections(t *testing.T) {
	tests := map[string]string{
		"update of nothing":              "*** Update File: nothing\n@@\n-x\n+y\n",
		"update in no directory":         "*** Update File: no/thing\n@@\n-x\n+y\n",
		"delete of nothing":              "*** Delete File: nothing\n",
		"delete twice":                   "*** Delete File: f\n*** Delete File: f\n",
		"update after delete":            "*** Delete File: f\n*** Update File: f\n@@\n-x\n+y\n",
		"update after move":              "*** Update File: f\n*** Move to: h\n@@\n x\n*** Update File: f\n@@\n-x\n+y\n",
		"file becomes a directory":       "*** Delete File: f\n*** Add File: f/g\n+x\n",
		"new file becomes a directory":   "*** Add File: n\n+x\n*** Add File: n/g\n+x\n",
		"new directory becomes a file":   "*** Add File: n/g\n+x\n*** Add File: n\n+x\n",
		"directory emptied, then a file": "*** Delete File: d/g\n*** Add File: d\n+x\n",
	}
	for name, sections := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			before := folder{"f": "x\n", "d/g": "y\n"}
			before.write(t, dir)
			err := apply(t, dir, sections)
			if _, ok := errors.AsType[*tree.PathError](err); !ok {
				t.Errorf("error = %v, want a PathError", err)
			}
			wantTree(t, dir, before)
		})
	}
}

// Names that only look like what is refused.
func TestAcceptsHarmlessNames(t *testing.T) {
	for _, name := range []string{".gitignore", ".github/x", "git", "a.git", ".git2", "git~2", "...", "..a", "a..", `a\b`, "ſ"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, apply(t, dir, "*** Add File: "+name+"\n+x\n"))
			wantTree(t, dir, folder{name: "x\n"})
		})
	}
}

func TestSupportsLinksInsideTree(t *testing.T) {
	tests := map[string]struct {
		sections string
		want     folder
		changes  []string
	}{
		"update through a link to a file": {
			"*** Update File: l\n@@\n-x\n+y\n",
			folder{"d/f": "y\n", "l": "-> d/f", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update d/f"},
		},
		"update through a link to a directory": {
			"*** Update File: e/f\n@@\n-x\n+y\n",
			folder{"d/f": "y\n", "l": "-> d/f", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update d/f"},
		},
		"two names for one file": {
			"*** Update File: e/f\n@@\n-x\n+y\n*** Update File: l\n@@\n-y\n+z\n",
			folder{"d/f": "z\n", "l": "-> d/f", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update d/f"},
		},
		"add through a dangling link": {
			"*** Add File: dangling\n+n\n",
			folder{"d/f": "x\n", "d/n": "n\n", "l": "-> d/f", "e": "-> d", "dangling": "-> d/n"},
			[]string{"add d/n"},
		},
		"delete a link": {
			"*** Delete File: l\n",
			folder{"d/f": "x\n", "e": "-> d", "dangling": "-> d/n"},
			[]string{"delete l"},
		},
		"delete a dangling link": {
			"*** Delete File: dangling\n",
			folder{"d/f": "x\n", "l": "-> d/f", "e": "-> d"},
			[]string{"delete dangling"},
		},
		"a file in place of a link": {
			"*** Delete File: l\n*** Add File: l\n+n\n",
			folder{"d/f": "x\n", "l": "n\n", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update l"},
		},
		"move by a link": {
			"*** Update File: l\n*** Move to: m\n@@\n-x\n+y\n",
			folder{"d/f": "x\n", "m": "y\n", "e": "-> d", "dangling": "-> d/n"},
			[]string{"delete l", "add m"},
		},
		"move of a link onto itself": {
			"*** Update File: l\n*** Move to: ./l\n@@\n-x\n+y\n*** Update File: l\n@@\n-y\n+z\n",
			folder{"d/f": "z\n", "l": "-> d/f", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update d/f"},
		},
		"move onto a link to it": {
			"*** Update File: d/f\n*** Move to: l\n@@\n-x\n+y\n*** Update File: l\n@@\n-y\n+z\n",
			folder{"d/f": "z\n", "l": "-> d/f", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update d/f"},
		},
		"move onto what the link leads to": {
			"*** Update File: l\n*** Move to: d/f\n@@\n-x\n+y\n",
			folder{"d/f": "y\n", "e": "-> d", "dangling": "-> d/n"},
			[]string{"update d/f", "delete l"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder{"d/f": "x\n"}.write(t, dir)
			for link, target := range map[string]string{"l": "d/f", "e": "d", "dangling": "d/n"} {
				must.Do(t, os.Symlink(target, filepath.Join(dir, link)))
			}
			plan := planned(t, dir, tt.sections)
			var changes []string
			for _, c := range plan.Changes() {
				changes = append(changes, string(c.Op)+" "+c.Path)
			}
			must.Same(t, tt.changes, changes)
			must.Do(t, plan.Commit(t.Context()))
			wantTree(t, dir, tt.want)
		})
	}
}

// What changes between plan and commit is noticed and stays as it is.
func TestCommitRefusesChangedTree(t *testing.T) {
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	link := func(target, name string) func(string) error {
		return func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
			return os.Symlink(target, filepath.Join(dir, name))
		}
	}
	tests := map[string]func(dir string) error{
		"written":                     write("d/f", "longer\n"),
		"removed":                     func(dir string) error { return os.Remove(filepath.Join(dir, "d/f")) },
		"directory removed":           func(dir string) error { return os.RemoveAll(filepath.Join(dir, "d")) },
		"came into being":             write("n", "mine\n"),
		"replaced by a link":          link("../../outside/secret", "d/f"),
		"directory became a link":     link("../outside", "d"),
		"directory became .git":       link(".git", "d"),
		"deleted file was written":    write("gone", "longer\n"),
		"deleted file became another": func(dir string) error { return os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "gone")) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir, outside := filepath.Join(parent, "tree"), filepath.Join(parent, "outside")
			folder{"d/f": "x\n", "gone": "g\n", "other": "g\n", ".git/f": "x\n"}.write(t, dir)
			folder{"secret": "x\n", "f": "x\n"}.write(t, outside)
			plan := planned(t, dir, "*** Add File: a/b\n+n\n*** Update File: d/f\n@@\n-x\n+y\n*** Add File: n\n+n\n*** Delete File: gone\n")
			must.Do(t, change(dir))
			before, beforeOutside := readTree(t, dir), readTree(t, outside)
			err := plan.Commit(t.Context())
			if _, ok := errors.AsType[*tree.ChangedError](err); !ok {
				t.Errorf("error = %v, want a ChangedError", err)
			}
			wantTree(t, dir, before)
			wantTree(t, outside, beforeOutside)
		})
	}
}

func TestRefusesLargeFile(t *testing.T) {
	dir := t.TempDir()
	f := must.Get(os.Create(filepath.Join(dir, "large")))(t)
	must.Do(t, errors.Join(f.Truncate(1<<30), f.Close()))
	for _, sections := range []string{
		"*** Update File: large\n@@\n-x\n+y\n", "*** Add File: large\n+y\n", "*** Delete File: large\n",
	} {
		err := apply(t, dir, sections)
		if _, ok := errors.AsType[*tree.PathError](err); !ok {
			t.Errorf("error = %v, want a PathError", err)
		}
	}
}

// bloated is a directory whose files say that they are as large as they may be.
type bloated struct{ tree.Dir }

type bloatedInfo struct{ fs.FileInfo }

func (bloatedInfo) Size() int64 { return tree.MaxFileSize }

func (d bloated) Lstat(name string) (fs.FileInfo, error) {
	info, err := d.Dir.Lstat(name)
	return bloatedInfo{info}, err
}

func (d bloated) Open(name string, seen fs.FileInfo) (*os.File, error) {
	return d.Dir.Open(name, seen.(bloatedInfo).FileInfo)
}

// Files that are not too large each may be so together.
func TestRefusesLargePlan(t *testing.T) {
	dir := t.TempDir()
	files, sections := folder{}, ""
	for _, name := range []string{"1", "2", "3", "4", "5"} {
		files[name] = ""
		sections += "*** Delete File: " + name + "\n"
	}
	files.write(t, dir)
	_, err := tree.NewPlan(t.Context(), bloated{tree.OnRoot(openRoot(t, dir))}, parsed(t, sections))
	bad, ok := errors.AsType[*tree.PathError](err)
	if !ok || bad.Path != "5" {
		t.Errorf("error = %v, want one about the fifth file", err)
	}
}

func TestReadOnlyDirectoryFailsWholeCommit(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	dir := t.TempDir()
	before := folder{"f": "x\n", "d/g": "y\n"}
	before.write(t, dir)
	plan := planned(t, dir, "*** Update File: f\n@@\n-x\n+z\n*** Add File: n/n\n+n\n*** Update File: d/g\n@@\n-y\n+z\n")
	must.Do(t, os.Chmod(filepath.Join(dir, "d"), 0o500))
	err := plan.Commit(t.Context())
	must.Do(t, os.Chmod(filepath.Join(dir, "d"), 0o700))
	must.Is(t, fs.ErrPermission, err, "error")
	wantTree(t, dir, before)
}

func TestErrorTexts(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"path":       {&tree.PathError{Path: "f", Line: 2, Problem: "p"}, "f (line 2 of the patch): p"},
		"bare path":  {&tree.PathError{Path: "f", Problem: "p"}, "f: p"},
		"changed":    {&tree.ChangedError{Path: "f", Reason: "r"}, "f changed while the patch was being applied (r): read it again and make a new patch"},
		"commit":     {&tree.CommitError{Path: "f", Err: fs.ErrPermission}, "write f: permission denied; nothing was changed"},
		"unrestored": {&tree.CommitError{Path: "f", Err: fs.ErrPermission, Unrestored: []string{"f", "g"}}, "write f: permission denied; could not be put back: f, g"},
		"litter":     {&tree.CommitError{Path: "f", Err: fs.ErrPermission, Leftover: []string{"t", "d"}}, "write f: permission denied; nothing was changed; could not be removed, so remove: t, d"},
		"leftover":   {&tree.LeftoverError{Paths: []string{"t"}, Err: fs.ErrPermission}, "the patch is applied, but old content could not be removed: permission denied; remove t"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			must.Same(t, tt.want, tt.err.Error())
		})
	}
}
