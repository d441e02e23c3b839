package worktree_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
)

// hugeSize is that of a file which takes no room and no end to read.
const hugeSize = 15 << 40

// gitLines are the lines that git printed.
func gitLines(out string) []string { return strings.Split(out, "\n") }

func TestKeepCopiesDataAndNoHoles(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Sparse("image", hugeSize)
	f, err := os.OpenFile(r.Path("image"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("data"), 1<<30); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := syscall.Mkfifo(r.Path("pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	r.Nest("d", 1500)
	c := open(t, r)
	kept := t.TempDir()
	if err := c.work.Keep(t.Context(), []string{"d", "image", "none", "pipe"}, c.index(), kept); err != nil {
		t.Fatal(err)
	}
	copied, err := os.Open(filepath.Join(kept, "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if info, err := copied.Stat(); err != nil || info.Size() != hugeSize {
		t.Errorf("the copy is not as long as the file: %v, %v", info, err)
	}
	data := make([]byte, 4)
	if _, err := copied.ReadAt(data, 1<<30); err != nil || string(data) != "data" {
		t.Errorf("the copy holds %q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(kept, "pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the pipe was copied: %v", err)
	}
}

func TestKeepCopiesSubmoduleFiles(t *testing.T) {
	lib := gittest.New(t)
	lib.Write("words", "w\n")
	lib.Commit("seed")
	r := gittest.New(t)
	r.AddSubmodule(lib, "lib")
	r.Commit("seed")
	r.Write("lib/untracked", "u\n")
	c := open(t, r)
	kept := gittest.Repo{T: t, Dir: filepath.Join(t.TempDir(), "kept")}
	if err := c.work.Keep(t.Context(), nil, c.index(), kept.Dir); err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "kept", map[string]string{"lib/words": "w\n", "lib/untracked": "u\n"}, kept.Files())
	if _, err := os.Lstat(kept.Path("lib/.git")); err == nil {
		t.Error("the .git of the submodule was copied")
	}
}
