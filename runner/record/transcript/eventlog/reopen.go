package eventlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Reopen verifies the chain of a killed run's log and continues it. It truncates an incomplete last
// line and returns the length of that line.
func Reopen(path string, o Options) (log *Log, tornBytes int, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("reopen transcript: %w", err)
	}
	l := newLog(f, o)
	l.dir = filepath.Dir(path)
	tornBytes, err = l.resume(f)
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("reopen transcript: %w", err)
	}
	return l, tornBytes, nil
}

// resume verifies the chain of f, truncates an incomplete last line, and sets l to the end of the
// chain. It returns the number of bytes truncated. After an error, l must not be used.
func (l *Log) resume(f *os.File) (tornBytes int, err error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() { // reading a pipe could block forever
		err = fmt.Errorf("%s is not a regular file", f.Name())
	}
	if err != nil {
		return 0, err
	}
	chain, err := followChain(f)
	torn, isTorn := errors.AsType[*TornError](err)
	switch {
	case isTorn:
		tornBytes, l.size = torn.Bytes, torn.Offset
		err = f.Truncate(torn.Offset)
	case err == nil:
		l.size, err = f.Seek(0, io.SeekEnd)
	}
	l.seq = chain.last.Seq
	l.head.Store(&chain.head)
	return tornBytes, err
}
