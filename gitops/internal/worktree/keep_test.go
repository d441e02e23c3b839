package worktree_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// hugeSize is that of a file which takes no room and no end to read.
const hugeSize = 15 << 40

// gitLines are the lines that git printed.
func gitLines(out string) []string { return strings.Split(out, "\n") }

func TestKeepCopiesDataAndNoHoles(t *testing.T) {
	r := gittest.Seeded(t)
	r.Sparse("image", hugeSize)
	f := must.Get(os.OpenFile(r.Path("image"), os.O_WRONLY, 0))(t)
	must.Get(f.WriteAt([]byte("data"), 1<<30))(t)
	f.Close()
	must.Do(t, syscall.Mkfifo(r.Path("pipe"), 0o666))
	r.Nest("d", 1500)
	c := open(t, r)
	kept := t.TempDir()
	must.Do(t, c.work.Keep(t.Context(), []string{"d", "image", "none", "pipe"}, c.index(), kept))
	copied := must.Get(os.Open(filepath.Join(kept, "image")))(t)
	defer copied.Close()
	must.Same(t, hugeSize, must.Get(copied.Stat())(t).Size(), "the copy is not as long as the file")
	data := make([]byte, 4)
	if _, err := copied.ReadAt(data, 1<<30); err != nil || string(data) != "data" {
		t.Errorf("the copy holds %q, %v", data, err)
	}
	must.Is(t, fs.ErrNotExist, must.Err(os.Lstat(filepath.Join(kept, "pipe"))), "the pipe was copied")
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
	must.Do(t, c.work.Keep(t.Context(), nil, c.index(), kept.Dir))
	must.Same(t, map[string]string{"lib/words": "w\n", "lib/untracked": "u\n"}, kept.Files(), "kept")
	must.Fail(t, "", must.Err(os.Lstat(kept.Path("lib/.git"))), "the .git of the submodule was copied")
}
