// Package regularfile opens files in places that commands may have changed. It opens regular files
// only and never blocks on a FIFO. It limits every read in size and by its context. It does not
// know the files' content.
package regularfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Small is a size limit in bytes, for a file that is read as a whole: rules, a configuration, a
// list of commits.
const Small = 8 << 20

// Open opens a regular file. It also opens the null device, as an empty file.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return requireAccepted(f, path, Reads)
}

// OpenIn opens a regular file below dir. It does not follow a link at the end of the path, or any
// link out of dir.
func OpenIn(dir *os.Root, path string) (*os.File, error) {
	f, err := dir.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return requireAccepted(f, path, isRegular)
}

// Append opens a regular file for appending, or creates it. It does not follow a link at the end of
// the path.
func Append(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	return requireAccepted(f, path, isRegular)
}

// requireAccepted returns f if accepts returns true. Otherwise it closes f and returns an error with path.
func requireAccepted(f *os.File, path string, accepts func(fs.FileInfo) bool) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !accepts(info) {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Reads reports whether Open opens such a file.
func Reads(info fs.FileInfo) bool { return isRegular(info) || isNull(info) }

func isRegular(info fs.FileInfo) bool { return info.Mode().IsRegular() }

func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// OpenFolder opens a folder. The final slash prevents blocking on a FIFO in its place.
func OpenFolder(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/") }

// Read reads a file like Open. It fails if the file has more than most bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, most)
}

// ReadIn reads a file like OpenIn. It fails if the file has more than Small bytes.
func ReadIn(dir *os.Root, path string) ([]byte, error) {
	f, err := OpenIn(dir, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, Small)
}

// readOpen reads an open file. It fails if the file has more than most bytes.
func readOpen(f *os.File, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(f, most+1)) // a file can claim to have any size
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", f.Name(), most)
	}
	return content, nil
}

// CopyIfThere copies a file of up to most bytes. It does nothing if from is "", missing or may not
// be read.
func CopyIfThere(from, to string, most int64) error {
	if from == "" {
		return nil
	}
	in, err := Open(from)
	if Absent(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Size() > most {
		return fmt.Errorf("%s has more than %d bytes", from, most)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Until returns a reader of r that fails after the end of ctx.
func Until(ctx context.Context, r io.Reader) io.Reader { return boundReader{ctx, r} }

type boundReader struct {
	ctx context.Context
	r   io.Reader
}

func (b boundReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.r.Read(p)
}

// Absent reports whether an error is about a missing path, including a path below a file.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Obstacle returns the path of a link or other non-folder at dir or above it, or "" if there is
// none.
func Obstacle(root *os.Root, dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			return dir
		}
	}
	return ""
}
