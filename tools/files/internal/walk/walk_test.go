package walk

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTree(t *testing.T, names ...string) (*Tree, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		toolstest.Write(t, dir, map[string]string{name: name})
	}
	root := must.Get(toolstest.Folder(t, dir).Root())(t)
	tree := must.Get(Open(root, Rules{}))(t)
	t.Cleanup(func() { tree.Close() })
	return tree, dir
}

func everything(string) bool { return true }

// TestOpenWaysAgree holds the kernel's way and the standard library's to the
// same.
func TestOpenWaysAgree(t *testing.T) {
	tree, dir := newTree(t, "a", "sub/b")
	toolstest.Link(t, dir, map[string]string{"link": "a", "out": filepath.Dir(dir), "sub/up": "../.."})
	for _, way := range []struct {
		name string
		open func(string, int) (*Content, error)
	}{{"the kernel's", tree.open}, {"the standard library's", tree.openInRoot}} {
		for _, path := range []string{"a", "sub/b"} {
			file, err := way.open(path, 0)
			must.Do(t, err, way.name)
			must.Same(t, path, string(must.Get(io.ReadAll(file))(t)), way.name)
			must.Do(t, file.Close(), way.name)
		}
		for _, path := range []string{"missing", "../" + filepath.Base(dir) + "/a", "out/x", "sub/up/x", "a/b", "/etc/passwd"} {
			if file, err := way.open(path, 0); err == nil {
				file.Close()
				t.Errorf("%s opens %s", way.name, path)
			}
		}
		folder, err := way.open("sub", syscall.O_DIRECTORY)
		must.Do(t, err, way.name)
		names, err := folder.names()
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"b", "up"}) {
			t.Errorf("%s: got %q, %v", way.name, names, err)
		}
		folder.Close()
	}
}

func TestOpenNeverWaitsForPipe(t *testing.T) {
	tree, dir := newTree(t)
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if file, err := tree.Open(File{Path: "pipe", Size: 1}); err == nil { // not reached by a walk
		if n, err := file.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d, %v", n, err)
		}
		file.Close()
	}
	if file, err := tree.openInRoot("pipe", 0); err == nil {
		file.Close()
		t.Error("the standard library's way opens a pipe")
	}
}

func TestReadsFileUpToSize(t *testing.T) {
	tree, _ := newTree(t, "name")
	for size, want := range map[int64]string{0: "", 4: "name", 9: "name"} {
		file := must.Get(tree.Open(File{Path: "name", Size: size}))(t)
		must.Same(t, want, string(must.Get(io.ReadAll(file))(t)), "size", size)
		file.Close()
	}
}

func TestCancelEndsFiles(t *testing.T) {
	tree, _ := newTree(t, "a/b/c", "d/e/f")
	ctx, cancel := context.WithCancel(t.Context())
	files, err := tree.Files(ctx, time.Time{}, func(string) bool {
		cancel()
		return true
	})
	if !errors.Is(err, context.Canceled) || files != nil {
		t.Errorf("got %v, %v", files, err)
	}
}

func TestSkipsUnreadableFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads every folder")
	}
	tree, dir := newTree(t, "a", "sub/b")
	must.Do(t, os.Chmod(filepath.Join(dir, "sub"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "sub"), 0o700) })
	files, err := tree.Files(t.Context(), time.Time{}, everything)
	if err != nil || len(files) != 1 || files[0].Path != "a" {
		t.Errorf("got %v, %v", files, err)
	}
}

// TestSkipsIrregularIgnoreFiles shows that a link or a folder in place of an
// ignore file decides nothing.
func TestSkipsIrregularIgnoreFiles(t *testing.T) {
	tree, dir := newTree(t, "a", "one/a", "two/.gitignore/x", "rules")
	toolstest.Write(t, dir, map[string]string{"rules": "*\n"})
	toolstest.Link(t, dir, map[string]string{"one/.gitignore": "../rules"})
	must.Same(t, 4, len(must.Get(tree.Files(t.Context(), time.Time{}, everything))(t)))
}
