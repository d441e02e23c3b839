package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// smallLimit is the size of a configuration, or of a file that names a folder,
// that is read.
const smallLimit = 1 << 20

// openPlain opens a regular file. It waits for nobody who would write a pipe,
// which commands can put in the place of any file that they may write.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", path), f.Close())
	}
	return f, nil
}

// readSmall reads a little more of a file than a small one has: a file can say that
// it has terabytes.
func readSmall(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, smallLimit+1))
}

// skip goes on behind an entry, which is nil for a folder that the walk could not
// even begin with.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// within says whether path is one of the folders or lies below one.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && filepath.IsLocal(rel)
	})
}
