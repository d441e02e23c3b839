// Package walk lists the files of a folder, without those ignored by git. It follows no links.
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

// Tree is an open folder with all files below it. It is safe for concurrent use.
type Tree struct {
	rules Rules
	root  *os.Root
	dir   *os.File // the same folder
}

// Entry is a file or folder in a folder.
type Entry struct {
	Name     string
	Mode     fs.FileMode // only the type bits
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

// Open opens the folder of root as a tree. The caller closes both.
func Open(root *os.Root, r Rules) (*Tree, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &Tree{r, root, dir}, nil
}

// Close closes the folder.
func (t *Tree) Close() error { return t.dir.Close() }

// Top returns the tree's top folder.
func (t *Tree) Top() Folder { return Folder{ignoreLists: t.rules.Outer} }

// Open opens a file for reading up to its listed size. It never follows a link out of the tree, and follows no links at
// all if the kernel supports that.
func (t *Tree) Open(f File) (*Content, error) {
	file, err := t.open(f.Path, 0)
	if err != nil {
		return nil, err
	}
	file.remaining = f.Size
	return file, nil
}

// List returns a folder's entries sorted by name, and the folder with the rules of its ignore file, for Below.
func (t *Tree) List(f Folder) (entries []Entry, withRules Folder, err error) {
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
	entries = make([]Entry, 0, len(names))
	for _, name := range names {
		e, err := dir.stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was deleted since
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

// withIgnoreFile returns the folder with the rules of its .gitignore file. A nested repository has only its own rules.
// names are the sorted names in the folder.
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
		return f // as git does, which follows no link here either
	}
	if list := rules.ParseIgnore(text, t.rules.prefix+f.path); !list.Empty() {
		f.ignoreLists = append(slices.Clip(f.ignoreLists), list)
	}
	return f
}

// maxIgnoreFile is the maximum size of an ignore file, in bytes.
const maxIgnoreFile = 8 << 20

// readIgnoreFile returns the content of the ignore file at path.
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

// Files returns the regular files of the tree for which keep returns true. Files modified after since come first, the
// newest first. The others are sorted by path, because their times are only those of the checkout. Files skips folders
// that cannot be read. keep is called concurrently.
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

// walker visits the folders of a tree, several at once.
type walker struct {
	tree    *Tree
	keep    func(path string) bool
	since   int64 // nanoseconds since 1970
	slots   chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	files []File
	err   error // error of the tree's top folder
}

// visit adds the files of a folder and of the folders below it.
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

// visitConcurrently visits a folder in another goroutine if not too many are running.
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

// addFiles adds the regular files among a folder's entries for which keep returns true.
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

// recordError keeps the error of the tree's top folder. Errors of other folders are ignored.
func (w *walker) recordError(f Folder, err error) {
	if f.path == "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	}
}
