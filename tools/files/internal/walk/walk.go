// Package walk lists a folder's content without files ignored by git. It follows no link and shows
// no content.
package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/rules"
)

// Tree is an open folder with everything below. It is safe for concurrent use.
type Tree struct {
	rules Rules
	root  *os.Root
	dir   *os.File // the same folder
}

// Entry is something in a folder.
type Entry struct {
	Name     string
	Mode     fs.FileMode // its type bits
	modified int64       // nanoseconds since 1970
	size     int64
	device   uint64
	inode    uint64
	ignored  bool
}

// File is a regular file of the tree.
type File struct {
	Path     string
	modified int64 // nanoseconds since 1970
	Size     int64 // bytes
}

// Open opens a root's folder. The caller keeps the root.
func Open(root *os.Root, r Rules) (*Tree, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &Tree{r, root, dir}, nil
}

// Close closes the folder.
func (t *Tree) Close() error { return t.dir.Close() }

// Top is the tree's own folder.
func (t *Tree) Top() Folder { return Folder{ignoreLists: t.rules.Outer} }

// Open opens a file for reading up to its known size. It follows no link if the kernel supports
// that, and never one out of the tree.
func (t *Tree) Open(f File) (*Content, error) {
	file, err := t.open(f.Path, 0)
	if err != nil {
		return nil, err
	}
	file.remaining = f.Size
	return file, nil
}

// List returns a folder's entries by name, and the folder with its ignore file for Below.
func (t *Tree) List(f Folder) ([]Entry, Folder, error) {
	dir, err := t.open(f.path, unix.O_DIRECTORY)
	if err != nil {
		return nil, f, fmt.Errorf("open folder %q: %w", f.path, err)
	}
	defer dir.Close()
	names, err := dir.names()
	if err != nil {
		return nil, f, fmt.Errorf("list folder %q: %w", f.path, err)
	}
	slices.Sort(names)
	f = t.withIgnoreFile(f, names)
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		e, err := dir.stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has gone since
		}
		if err != nil {
			return nil, f, fmt.Errorf("look at %q: %w", f.path+name, err)
		}
		if t.rules.View.HidesID(e.device, e.inode) {
			continue
		}
		var visible bool
		if e.ignored, visible = t.rules.visibility(f, name, e.Mode.IsDir()); visible {
			entries = append(entries, e)
		}
	}
	return entries, f, nil
}

// withIgnoreFile adds a folder's ignore file. A nested repository has its own rules.
func (t *Tree) withIgnoreFile(f Folder, names []string) Folder {
	if t.rules.All || f.ignored {
		return f
	}
	if f.path != "" && slices.Contains(names, ".git") {
		f.ignoreLists = nil
	}
	if _, exists := slices.BinarySearch(names, ".gitignore"); !exists {
		return f
	}
	text, err := t.readIgnoreFile(f.path + ".gitignore")
	if err != nil {
		return f // git goes on as well, and does not follow a link here either
	}
	if list := rules.ParseIgnore(text, t.rules.prefix+f.path); !list.Empty() {
		f.ignoreLists = append(slices.Clip(f.ignoreLists), list)
	}
	return f
}

// maxIgnoreFile is up to how many bytes an ignore file is read.
const maxIgnoreFile = 8 << 20

func (t *Tree) readIgnoreFile(path string) ([]byte, error) {
	file, err := t.open(path, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var info unix.Stat_t
	if err := unix.Fstat(file.fd, &info); err != nil {
		return nil, err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG || info.Size > maxIgnoreFile {
		return nil, fmt.Errorf("not a regular file of at most %d bytes", maxIgnoreFile)
	}
	return io.ReadAll(io.LimitReader(file, maxIgnoreFile))
}

// Files returns the tree's regular files accepted by keep: those modified after since first, newest
// first, then others by path, because a checkout's times mean nothing. It skips unreadable folders.
// keep is called concurrently.
func (t *Tree) Files(ctx context.Context, since time.Time, keep func(path string) bool) ([]File, error) {
	w := &walker{tree: t, keep: keep, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if !since.IsZero() {
		w.since = since.UnixNano()
	}
	w.visit(ctx, t.Top())
	w.running.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(w.files, func(a, b File) int {
		return cmp.Or(cmp.Compare(max(b.modified, w.since), max(a.modified, w.since)), strings.Compare(a.Path, b.Path))
	})
	return w.files, w.err
}

// walker goes through the folders of a tree, several at once.
type walker struct {
	tree    *Tree
	keep    func(path string) bool
	since   int64 // nanoseconds since 1970
	slots   chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	files []File
	err   error // of the tree's own folder
}

func (w *walker) visit(ctx context.Context, f Folder) {
	if ctx.Err() != nil {
		return
	}
	entries, f, err := w.tree.List(f)
	if err != nil {
		w.recordError(f, err)
		return
	}
	w.addFiles(f, entries)
	for _, e := range entries {
		if e.Mode.IsDir() {
			w.visitConcurrently(ctx, f.Below(e))
		}
	}
}

// visitConcurrently visits a folder in its own goroutine if there is room.
func (w *walker) visitConcurrently(ctx context.Context, f Folder) {
	select {
	case w.slots <- struct{}{}:
		w.running.Go(func() {
			defer func() { <-w.slots }()
			w.visit(ctx, f)
		})
	default:
		w.visit(ctx, f)
	}
}

func (w *walker) addFiles(f Folder, entries []Entry) {
	files := make([]File, 0, len(entries))
	for _, e := range entries {
		if path := f.path + e.Name; e.Mode.IsRegular() && w.keep(path) {
			files = append(files, File{path, e.modified, e.size})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = append(w.files, files...)
}

func (w *walker) recordError(f Folder, err error) {
	if f.path == "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	}
}
