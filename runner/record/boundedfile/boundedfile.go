// Package boundedfile reads files whose names come from users, workflows or run directories. It
// never blocks forever, obeys the context, and limits memory. It does not know what the files mean.
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

// Read reads a file. If the file is longer than maxBytes bytes, it returns maxBytes+1 bytes, so that the
// caller notices. It reads from a pipe until the writers close it or ctx ends.
func Read(ctx context.Context, path string, maxBytes int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Only files that can block support deadlines; other files are read at once.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := io.ReadAll(io.LimitReader(WithContext(ctx, f), maxBytes+1))
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return raw, err
}

// OpenIn opens a regular file below a root. It does not block on other files, such as a pipe, and
// returns an error.
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

// ReadIn reads a regular file below a root. It fails if the file has more than maxBytes bytes.
func ReadIn(root *os.Root, name string, maxBytes int64) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxBytes {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxBytes)}
	}
	return io.ReadAll(io.LimitReader(f, maxBytes))
}

// WithContext returns a reader of r that fails with ctx's cause once ctx has ended.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (b contextReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.r.Read(p)
}
