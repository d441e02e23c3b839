package gitops

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

// openPlain opens a regular file, or the null device, which stands for an empty
// one. It does not wait for the other end of a pipe.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return only(f, path, func(info fs.FileInfo) bool { return info.Mode().IsRegular() || isNull(info) })
}

// only gives an open file if it is of a kind, and closes any other.
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

func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// readBounded reads a file that openPlain opens, of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, most)
}

// readOpen reads an open file whose size is known to be small before it is read.
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

// readRegular reads a small regular file, through no link.
func readRegular(dir *os.Root, path string) ([]byte, error) {
	f, err := openRegular(dir, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, mostRules)
}

// openRegular opens a regular file, never a link, pipe or device that has come
// in its place.
func openRegular(dir *os.Root, path string) (*os.File, error) {
	f, err := dir.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return only(f, path, func(info fs.FileInfo) bool { return info.Mode().IsRegular() })
}

// openFolder opens a folder. With the slash the open does not wait for the other
// end of a pipe that has come in its place.
func openFolder(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/") }

// until reads from r as long as ctx lasts.
func until(ctx context.Context, r io.Reader) io.Reader { return boundReader{ctx, r} }

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
