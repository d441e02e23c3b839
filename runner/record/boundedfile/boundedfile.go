// Package boundedfile reads files named by users, workflows or run directories. It never blocks
// forever, obeys the context, and bounds memory. It does not know the meaning of the files.
package boundedfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Read reads a named file. Of a longer file it returns most+1 bytes, so the caller can tell. It
// reads a pipe while somebody writes and ctx lasts.
func Read(ctx context.Context, path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// What can be waited for knows deadlines; the rest is read at once.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := io.ReadAll(io.LimitReader(Until(ctx, f), most+1))
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return raw, err
}

// OpenIn opens a regular file below a root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadIn reads a regular file below a root. It fails if the file has more bytes than permitted.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f, name, most)
}

// readOpen reads a file of OpenIn up to most bytes.
func readOpen(f *os.File, name string, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has %d bytes, more than %d", info.Size(), most)}
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Until reads from r as long as ctx lasts.
func Until(ctx context.Context, r io.Reader) io.Reader { return bound{ctx, r} }

type bound struct {
	ctx context.Context
	r   io.Reader
}

func (b bound) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.r.Read(p)
}
