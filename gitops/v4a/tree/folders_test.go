package tree_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// counted is a directory that counts the open ones below it.
type counted struct {
	tree.Dir
	*openFolders
}

type openFolders struct{ now, most int }

func (d counted) Sub(name string) (tree.Dir, error) {
	sub, err := d.Dir.Sub(name)
	if err == nil {
		d.now++
		d.most = max(d.most, d.now)
	}
	return counted{sub, d.openFolders}, err
}

func (d counted) Close() error {
	d.now--
	return d.Dir.Close()
}

// inManyFolders has the same file in 300 folders.
func inManyFolders(text string) folder {
	files := folder{}
	for i := range 300 {
		files[fmt.Sprintf("d/%03d/f", i)] = text
	}
	return files
}

// sectionsFor has a section for each file.
func (files folder) sectionsFor(header, body string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b.WriteString(header + name + "\n" + body)
	}
	return b.String()
}

// A process may open few files; a patch may change files in many folders.
func TestCommitOpensFewFolders(t *testing.T) {
	all := inManyFolders("x\n")
	adding, updating := all.sectionsFor("*** Add File: ", "+x\n"), all.sectionsFor("*** Update File: ", "@@\n-x\n+y\n")
	for name, test := range map[string]struct {
		before       folder
		sections     string
		failing      string // this operation fails when it is called for the 250th time
		after        folder
		wantsFailure bool
	}{
		"new folders":         {folder{}, adding, "", all, false},
		"new folders, undone": {folder{}, adding, "remove", folder{}, true},
		"folders":             {all, updating, "", inManyFolders("y\n"), false},
		"folders, undone":     {all, updating, "rename", all, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.before.write(t, dir)
			calls := 0
			fails := func(_ int, operation string) bool {
				if operation == test.failing {
					calls++
				}
				return calls == 250 && operation == test.failing
			}
			opened := &openFolders{}
			work := faulty{counted{tree.OnRoot(openRoot(t, dir)), opened}, &faults{fails: fails}}
			err := plannedOn(t, work, test.sections).Commit(t.Context())
			must.Same(t, test.wantsFailure, err != nil, "it failed", err)
			if opened.most > 100 || opened.now != 0 {
				t.Errorf("%d folders were open at once, and %d are at the end", opened.most, opened.now)
			}
			wantTree(t, dir, test.after)
		})
	}
}

// A folder that a commit opens again is the same, or nothing is written.
func TestCommitRecognizesFolders(t *testing.T) {
	const meant, moved = "d/150", "d/moved"
	for name, replace := range map[string]func(meant, outside string) error{
		"a link":         func(meant, outside string) error { return os.Symlink(outside, meant) },
		"another folder": func(meant, outside string) error { return os.CopyFS(meant, os.DirFS(outside)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, outside := t.TempDir(), t.TempDir()
			all := inManyFolders("x\n")
			all.write(t, dir)
			folder{"f": "x\n"}.write(t, outside)
			f := &faults{fails: meddling(t, "link", func() error {
				if err := os.Rename(filepath.Join(dir, meant), filepath.Join(dir, moved)); err != nil {
					return err
				}
				return replace(filepath.Join(dir, meant), outside)
			})}
			work := faulty{tree.OnRoot(openRoot(t, dir)), f}
			must.Fail(t, "", plannedOn(t, work, all.sectionsFor("*** Update File: ", "@@\n-x\n+y\n")).Commit(t.Context()), "the patch was applied")
			wantTree(t, outside, folder{"f": "x\n"})
			after := readTree(t, dir)
			for name, text := range after {
				isAside := path.Dir(name) == moved && (tree.IsTemporary(path.Base(name)) || path.Base(name) == "f")
				if text != "x\n" && !isAside && name != meant {
					t.Errorf("%s is %q", name, text)
				}
			}
			must.Same(t, "x\n", after[moved+"/f"])
		})
	}
}
