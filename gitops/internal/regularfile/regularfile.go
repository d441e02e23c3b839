// Package regularfile opens files in places that commands may have changed: it reads regular files
// only, never blocks on a pipe, and bounds every read in size and by its context. It does not know
// the files' content.
package regularfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Small bounds a file read at once, in bytes: rules, a configuration, a list of commits.
const Small = 8 << 20

// Open opens a regular file, or the null device as an empty one.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return only(f, path, func(info fs.FileInfo) bool { return info.Mode().IsRegular() || isNull(info) })
}

// OpenIn opens a regular file below dir, never through a link out of it.
func OpenIn(dir *os.Root, path string) (*os.File, error) {
	f, err := dir.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return only(f, path, isRegular)
}

// Append opens or makes a regular file for appending, not through a link in its place.
func Append(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	return only(f, path, isRegular)
}

// only returns an open file if it is of a kind, and closes any other.
func only(f *os.File, path string, is func(fs.FileInfo) bool) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !is(info) {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func isRegular(info fs.FileInfo) bool { return info.Mode().IsRegular() }

func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// OpenFolder opens a folder. The slash prevents blocking on a pipe in its place.
func OpenFolder(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/") }

// Read opens a file like Open and reads it. It may have at most most bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, most)
}

// ReadIn opens a file like OpenIn and reads it, up to Small bytes.
func ReadIn(dir *os.Root, path string) ([]byte, error) {
	f, err := OpenIn(dir, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, Small)
}

// readOpen reads an open file, once its size is known to be within the bound.
func readOpen(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", f.Name(), info.Size(), most)
	}
	var content bytes.Buffer
	content.Grow(int(info.Size()) + bytes.MinRead)
	_, err = content.ReadFrom(io.LimitReader(f, most))
	return content.Bytes(), err
}

// CopyIfThere copies a file up to most bytes. It ignores a missing or unreadable one.
func CopyIfThere(from, to string, most int64) error {
	if from == "" {
		return nil
	}
	in, err := Open(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || info.Size() > most {
		return errors.Join(err, fmt.Errorf("%s has more than %d bytes", from, most))
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Until reads from r as long as ctx lasts.
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
