package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/record"
)

// patchedFolder is a workspace that has files, and nothing of git.
func patchedFolder(t *testing.T) (*Workspace, *os.Root) {
	t.Helper()
	work := t.TempDir()
	for name, text := range map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	rec := record.New("", nil)
	if err := rec.Make(t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close(); rec.Close() })
	return Folder(rec, work), root
}

func content(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(path)
			found[path] = "-> " + target
			return err
		case d.IsDir():
			found[path] = "folder"
		default:
			raw, err := root.ReadFile(path)
			found[path] = string(raw)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var touched = []string{"a.txt", "sub/b.txt", "link", "new/deep/c.txt"}

func openAs(root *os.Root) func() (*os.Root, error) {
	return func() (*os.Root, error) { return root, nil }
}

func TestABrokenPatchIsUndone(t *testing.T) {
	w, root := patchedFolder(t)
	before := content(t, root)
	if _, err := w.JournalPatch(openAs(root), showAll)(touched); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return root.WriteFile("a.txt", []byte("half\n"), 0o600) },
		func() error { return root.Remove("sub/b.txt") },
		func() error { return root.Remove("link") },
		func() error { return root.MkdirAll("new/deep", 0o755) },
		func() error {
			return errors.Join(root.MkdirAll("new/deep", 0o755), root.WriteFile("new/deep/c.txt", []byte("c\n"), 0o600))
		},
		func() error { return root.WriteFile("sub/.apply-patch-ABC.tmp", nil, 0o600) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if found, err := w.undoIn(root, root); err != nil || !found.Undone || found.Whole {
			t.Fatalf("%+v, %v", found, err)
		}
		if diff := cmp.Diff(before, content(t, root)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if _, err := w.JournalPatch(openAs(root), showAll)(touched); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := root.Stat("a.txt"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAWholePatchStays(t *testing.T) {
	w, root := patchedFolder(t)
	done, err := w.JournalPatch(openAs(root), showAll)(touched)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("a.txt", []byte("patched\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done(true)
	if found, err := w.undoIn(root, root); found.Undone || !found.Whole || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if got := content(t, root)["a.txt"]; got != "patched\n" {
		t.Errorf("a.txt is %q", got)
	}
}

func TestAPatchThatFailedLeavesNoJournal(t *testing.T) {
	w, root := patchedFolder(t)
	done, err := w.JournalPatch(openAs(root), showAll)(touched)
	if err != nil {
		t.Fatal(err)
	}
	done(false)
	if found, err := w.undoIn(root, root); found != (Found{}) || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// A link that commands put in the place of a folder leads no undoing astray.
func TestAPatchIsNotUndoneWhereALinkLeads(t *testing.T) {
	w, root := patchedFolder(t)
	if _, err := w.JournalPatch(openAs(root), showAll)(touched); err != nil {
		t.Fatal(err)
	}
	for _, step := range []error{
		root.Rename("sub", "moved"), root.Mkdir("kept", 0o755), root.WriteFile("kept/b.txt", []byte("kept\n"), 0o600), root.Symlink("kept", "sub"),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if _, err := w.undoIn(root, root); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root)["kept/b.txt"]; got != "kept\n" {
		t.Errorf("kept/b.txt is %q", got)
	}
}

// showAll is the view of commands that see everything.
func showAll() (*grants.View, error) { return nil, nil }

// A merge may change files beside the working directory.
func TestABrokenMergeIsUndoneBelowTheRootOfTheCheckout(t *testing.T) {
	w, top := patchedFolder(t)
	before := content(t, top)
	if err := w.beginJournal(top, showAll, touched, true); err != nil {
		t.Fatal(err)
	}
	dir, err := top.OpenRoot("sub") // the working directory
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	err = errors.Join(top.WriteFile("a.txt", []byte("half\n"), 0o600), top.Remove("sub/b.txt"), top.MkdirAll("new/deep", 0o755), top.WriteFile("new/deep/c.txt", nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := w.undoIn(dir, top); err != nil || !found.Undone {
		t.Fatalf("%+v, %v", found, err)
	}
	if diff := cmp.Diff(before, content(t, top)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestFilesAndFoldersInEachOthersPlaceArePutBack(t *testing.T) {
	w, root := patchedFolder(t)
	if err := root.WriteFile("sub/c.txt", []byte("c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := content(t, root)
	changed := []string{"a.txt", "a.txt/below/x", "link", "link/y", "sub", "sub/b.txt", "sub/c.txt"}
	steps := []func() error{
		func() error { return root.Remove("a.txt") },
		func() error { return root.MkdirAll("a.txt/below", 0o755) },
		func() error { return root.WriteFile("a.txt/below/x", []byte("x\n"), 0o600) },
		func() error { return errors.Join(root.Remove("link"), root.Mkdir("link", 0o755)) },
		func() error { return root.WriteFile("link/y", []byte("y\n"), 0o600) },
		func() error { return root.RemoveAll("sub") },
		func() error { return root.Symlink("link", "sub") },
	}
	for n := range len(steps) + 1 {
		if _, err := w.JournalPatch(openAs(root), showAll)(changed); err != nil {
			t.Fatal(err)
		}
		for _, step := range steps[:n] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := w.undoIn(root, root); err != nil || !found.Undone {
			t.Fatalf("after %d steps: %+v, %v", n, found, err)
		}
		if diff := cmp.Diff(before, content(t, root)); diff != "" {
			t.Fatalf("after %d steps (-before +after):\n%s", n, diff)
		}
	}
}
