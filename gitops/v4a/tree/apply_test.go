package tree_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
)

// folder is the content of files by path.
type folder map[string]string

// write makes the files of a folder below dir.
func (files folder) write(t rapid.TB, dir string) {
	t.Helper()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		must.Write(t, full, text)
	}
}

// readTree returns all files, links as "-> target" and empty directories as "/".
func readTree(t rapid.TB, dir string) folder {
	t.Helper()
	files := folder{}
	err := filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		if err != nil || full == dir {
			return err
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			entries, err := os.ReadDir(full)
			if err == nil && len(entries) == 0 {
				files[filepath.ToSlash(name)] = "/"
			}
			return err
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			files[filepath.ToSlash(name)] = "-> " + target
			return err
		case !d.Type().IsRegular():
			files[filepath.ToSlash(name)] = d.Type().String()
			return nil
		}
		text, err := os.ReadFile(full)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	must.Do(t, err)
	return files
}

func wantTree(t testing.TB, dir string, want folder) {
	t.Helper()
	must.Same(t, want, readTree(t, dir), filepath.Base(dir))
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root := must.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// parsed is the patch of sections.
func parsed(t rapid.TB, sections string) v4a.Patch {
	t.Helper()
	return must.Get(v4a.Parse(envelope(sections)))(t)
}

func planned(t testing.TB, dir, sections string) *tree.Plan {
	t.Helper()
	return plannedOn(t, tree.OnRoot(openRoot(t, dir)), sections)
}

func plannedOn(t testing.TB, dir tree.Dir, sections string) *tree.Plan {
	t.Helper()
	plan := must.Get(tree.NewPlan(t.Context(), dir, parsed(t, sections)))(t)
	return plan
}

// apply plans and commits sections.
func apply(t testing.TB, dir, sections string) error {
	t.Helper()
	return commit(t, dir, parsed(t, sections))
}

func commit(t testing.TB, dir string, patch v4a.Patch) error {
	t.Helper()
	plan, err := tree.NewPlan(t.Context(), tree.OnRoot(openRoot(t, dir)), patch)
	if err != nil {
		return err
	}
	return plan.Commit(t.Context())
}

// envelope wraps sections.
func envelope(sections string) string {
	return "*** Begin Patch\n" + sections + "*** End Patch\n"
}

// patches are patches of whole sections and what becomes of a tree by them.
var patches = map[string]struct {
	before   folder
	sections string
	want     folder
	summary  string
}{
	"add": {
		sections: "*** Add File: d/e/f\n+a\n+\n+b\n",
		want:     folder{"d/e/f": "a\n\nb\n"}, summary: "A d/e/f\n",
	},
	"add an empty file": {
		sections: "*** Add File: f\n", want: folder{"f": ""}, summary: "A f\n",
	},
	"add over a file": {
		before: folder{"f": "old\n"}, sections: "*** Add File: f\n+new\n",
		want: folder{"f": "new\n"}, summary: "A f\n",
	},
	"delete": {
		before: folder{"d/f": "x\n", "g": "y\n"}, sections: "*** Delete File: d/f\n",
		want: folder{"d": "/", "g": "y\n"}, summary: "D d/f\n",
	},
	"all kinds, summary by kind": {
		before:   folder{"u": "x\n", "d": "y\n"},
		sections: "*** Delete File: d\n*** Update File: u\n@@\n-x\n+z\n*** Add File: a\n+a\n",
		want:     folder{"u": "z\n", "a": "a\n"}, summary: "A a\nM u\nD d\n",
	},
	"move": {
		before:   folder{"a": "x\ny\n"},
		sections: "*** Update File: a\n*** Move to: d/b\n@@\n-x\n+z\n",
		want:     folder{"d/b": "z\ny\n"}, summary: "M d/b\n",
	},
	"move over a file": {
		before:   folder{"a": "x\n", "b": "y\n"},
		sections: "*** Update File: a\n*** Move to: b\n@@\n x\n",
		want:     folder{"b": "x\n"}, summary: "M b\n",
	},
	"move onto itself": {
		before:   folder{"a": "x\n"},
		sections: "*** Update File: a\n*** Move to: ./a\n@@\n-x\n+y\n",
		want:     folder{"a": "y\n"}, summary: "M ./a\n",
	},
	"sections for one file apply in order": {
		before:   folder{"a": "x\ny\n"},
		sections: "*** Update File: a\n@@\n-y\n+z\n*** Update File: a\n@@\n-x\n+w\n z\n",
		want:     folder{"a": "w\nz\n"}, summary: "M a\nM a\n",
	},
	"add and update": {
		sections: "*** Add File: a\n+x\n*** Update File: a\n@@\n-x\n+y\n",
		want:     folder{"a": "y\n"}, summary: "A a\nM a\n",
	},
	"delete and add": {
		before:   folder{"a": "x\n"},
		sections: "*** Delete File: a\n*** Add File: a\n+y\n",
		want:     folder{"a": "y\n"}, summary: "A a\nD a\n",
	},
	"swap by moves": {
		before:   folder{"a": "a\n", "b": "b\n"},
		sections: "*** Update File: a\n*** Move to: t\n@@\n a\n*** Update File: b\n*** Move to: a\n@@\n b\n*** Update File: t\n*** Move to: b\n@@\n a\n",
		want:     folder{"a": "b\n", "b": "a\n"}, summary: "M t\nM a\nM b\n",
	},
	"move, then a new file in its place": {
		before:   folder{"a": "a\n"},
		sections: "*** Update File: a\n*** Move to: b\n@@\n a\n*** Add File: a\n+new\n",
		want:     folder{"a": "new\n", "b": "a\n"}, summary: "A a\nM b\n",
	},
	"add and delete": {
		before:   folder{"x": "x\n"},
		sections: "*** Add File: a\n+x\n*** Delete File: a\n",
		want:     folder{"x": "x\n"}, summary: "A a\nD a\n",
	},
	"names with blanks": {
		sections: "*** Add File:   a b  \n+x\n",
		want:     folder{"  a b": "x\n"}, summary: "A   a b\n",
	},
	"padded markers": {
		before:   folder{"a": "x\n"},
		sections: "  *** Add File: n\n+x\n  *** Delete File: a  \n \t*** Add File: m\n+y\n",
		want:     folder{"n": "x\n", "m": "y\n"}, summary: "A n\nA m\nD a\n",
	},
	"dots in a path": {
		before:   folder{"d/a": "x\n"},
		sections: "*** Update File: ./d/../d//a\n@@\n-x\n+y\n",
		want:     folder{"d/a": "y\n"}, summary: "M ./d/../d//a\n",
	},
}

// notes are the expected notes on replaced files. A file that the patch deletes gets none.
var notes = map[string]string{
	"add over a file":  "Note: f: there was a file, and all of it was replaced. Make sure that this is meant.\n",
	"move over a file": "Note: b: there was a file, and all of it was replaced. Make sure that this is meant.\n",
}

func TestPatches(t *testing.T) {
	for name, tt := range patches {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tt.before.write(t, dir)
			plan := planned(t, dir, tt.sections)
			must.Same(t, notes[name], plan.Notes())
			must.Do(t, plan.Commit(t.Context()))
			wantTree(t, dir, tt.want)
			must.Same(t, "Success. Updated the following files:\n"+tt.summary, plan.Summary())
		})
	}
}

func TestKeepsModesWithoutSetuid(t *testing.T) {
	dir := t.TempDir()
	folder{"script": "a\n", "moved": "b\n", "replaced": "c\n"}.write(t, dir)
	const rights = fs.ModeSetuid | fs.ModeSetgid // of whoever owns the file: what is new in it does not get them
	for name, mode := range map[string]fs.FileMode{"script": rights | 0o755, "moved": rights | 0o750, "replaced": rights | 0o600} {
		must.Do(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	must.Do(t, apply(t, dir, strings.Join([]string{
		"*** Update File: script", "@@", "-a", "+A",
		"*** Update File: moved", "*** Move to: there", "@@", " b",
		"*** Add File: replaced", "+C", "",
	}, "\n")))
	for name, want := range map[string]fs.FileMode{"script": 0o755, "there": 0o750, "replaced": 0o600} {
		info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		must.Same(t, want, info.Mode(), name, "has mode")
	}
}
