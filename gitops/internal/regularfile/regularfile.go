// Package regularfile opens files at places where commands may have put
// something else: only regular files are read, no open waits for the other end
// of a pipe, and no read takes more than its bound or outlasts its context.
//
// It knows paths and open files, and nothing of what is in them.
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

// Small is how many bytes a file may have that is read whole: rules, a
// configuration, a list of commits.
const Small = 8 << 20

// Open opens a regular file, or the null device, which stands for an empty one.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return only(f, path, func(info fs.FileInfo) bool { return info.Mode().IsRegular() || isNull(info) })
}

// OpenIn opens a regular file below dir, never one that a link out of dir leads to.
func OpenIn(dir *os.Root, path string) (*os.File, error) {
	f, err := dir.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return only(f, path, isRegular)
}

// Append opens a regular file for writing at its end, through no link in its
// place, and makes it where there is none.
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

// OpenFolder opens a folder. With the slash the open does not wait for the other
// end of a pipe that has come in its place.
func OpenFolder(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/") }

// Read reads a file that Open opens, of at most so many bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, most)
}

// ReadIn reads a small file that OpenIn opens.
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

// CopyIfThere copies a file of at most so many bytes. One that is not there, or
// may not be read, is passed over.
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
