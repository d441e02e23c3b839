package gitops_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/internal/gittest"
)

// hugeSize is that of a file which takes no room and no end to read.
const hugeSize = 15 << 40

func (r repo) sparse(name string, size int64) {
	r.T.Helper()
	r.Write(name, "")
	if err := os.Truncate(r.Path(name), size); errors.Is(err, syscall.EFBIG) {
		r.T.Skip("this file system has no files of such a size")
	} else if err != nil {
		r.T.Fatal(err)
	}
}

// nest makes folders of a name within each other.
func (r repo) nest(name string, depth int) {
	r.T.Helper()
	at, err := os.OpenRoot(r.Dir)
	if err != nil {
		r.T.Fatal(err)
	}
	for range depth {
		if err := at.Mkdir(name, 0o777); err != nil {
			r.T.Fatal(err)
		}
		below, err := at.OpenRoot(name)
		if err != nil {
			r.T.Fatal(err)
		}
		at.Close()
		at = below
	}
	defer at.Close()
	if err := at.WriteFile("file", []byte("deep\n"), 0o666); err != nil {
		r.T.Fatal(err)
	}
}

func problemKinds(cs *gitops.ChangeSet) map[string]int {
	kinds := map[string]int{}
	for _, p := range cs.Problems {
		kinds[string(p.Kind)]++
	}
	return kinds
}

func TestAFileThatIsTooLargeIsLeftOutUnread(t *testing.T) {
	r := newRepo(t)
	r.Seed()
	c := r.open("")
	snap := snapshot(t, c)
	r.sparse("new", hugeSize)
	r.sparse("README", hugeSize)
	r.Write("small", "s\n")
	cs := changes(t, c, snap)
	gittest.Same(t, "change", []string{"A small"}, nameStatus(cs))
	gittest.Same(t, "problems", map[string]int{"large": 2}, problemKinds(cs))
	dirty, err := c.Dirty(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "modified", []string{"README"}, dirty)
}

func TestTheLargestFilesAreLeftOutUntilTheRestFits(t *testing.T) {
	r := newRepo(t)
	r.Seed()
	c := r.open("")
	snap := snapshot(t, c)
	r.sparse("a", gitops.LargestChange-2)
	r.sparse("b", gitops.LargestChange-1)
	r.sparse("c", gitops.LargestChange)
	r.Write("d", "two")
	gittest.Same(t, "problems", map[string]int{"large": 3}, problemKinds(changes(t, c, snap)))
}

func TestFoldersDeeperThanGitGoesAreLeftOut(t *testing.T) {
	for name, depth := range map[string]int{"d": 1500, strings.Repeat("long", 60): 30} {
		t.Run(name[:1], func(t *testing.T) {
			r := newRepo(t)
			r.Seed()
			c := r.open("")
			snap := snapshot(t, c)
			r.nest(name, depth)
			r.Write("beside", "b\n")
			cs := changes(t, c, snap)
			gittest.Same(t, "change", []string{"A beside"}, nameStatus(cs))
			gittest.Same(t, "problems", map[string]int{"too_deep": 1}, problemKinds(cs))
			if later := snapshot(t, c); !changes(t, c, later).Empty() || len(changes(t, c, later).Problems) > 0 {
				t.Error("what lay there before the first turn counts")
			}
		})
	}
}

func TestAttributesOfDeepFoldersCount(t *testing.T) {
	r := newRepo(t)
	r.Write("a/b/.gitattributes", "*.txt text\n")
	r.Seed()
	c := r.open("")
	snap := snapshot(t, c)
	r.Write("a/b/c/new.txt", "crlf\r\n")
	r.Write("a/other.txt", "crlf\r\n")
	cs := changes(t, c, snap)
	for _, f := range cs.Files {
		content, size, err := c.Blob(f.NewID)
		if err != nil {
			t.Fatal(err)
		}
		content.Close()
		want := int64(len("crlf\r\n"))
		if strings.HasPrefix(f.Path, "a/b/") {
			want--
		}
		if size != want {
			t.Errorf("%s has %d bytes as git stores it, want %d", f.Path, size, want)
		}
	}
}

// fading ends after it was looked at so many times.
type fading struct {
	context.Context
	looks atomic.Int64
}

func (f *fading) Err() error {
	if f.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestReadingALargeFileEndsWithTheContext(t *testing.T) {
	r := newRepo(t)
	r.Seed()
	c := r.open("")
	snap := snapshot(t, c)
	r.sparse("large", gitops.LargestChange)
	ctx := &fading{Context: t.Context()}
	ctx.looks.Store(64)
	if _, err := c.Changes(ctx, snap); err == nil {
		t.Error("a change set after the end of the context")
	}
	if looks := ctx.looks.Load(); looks < -64 {
		t.Errorf("looked at %d times after its end", -looks)
	}
}

func TestKeepUntrackedCopiesDataAndNoHoles(t *testing.T) {
	r := newRepo(t)
	r.Seed()
	r.sparse("image", hugeSize)
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
	r.nest("d", 1500)
	c := r.open("")
	kept := t.TempDir()
	if err := c.KeepUntracked(t.Context(), snapshot(t, c), kept); err != nil {
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

// What git keeps may be a pipe that nobody writes to.
func TestOpeningDoesNotWaitForPipes(t *testing.T) {
	for _, name := range []string{".git/info/exclude", ".git/info/attributes", ".git/index", ".git/HEAD", ".git/shallow", ".git/objects/info/alternates"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			r := newRepo(t)
			r.Seed()
			r.Remove(name)
			if err := syscall.Mkfifo(r.Path(name), 0o666); err != nil {
				t.Fatal(err)
			}
			state := t.TempDir()
			c, err := gitops.Open(t.Context(), gitops.Options{Dir: r.Dir, State: state})
			if err == nil {
				c.Close()
				t.Error("it was opened")
			}
		})
	}
}
