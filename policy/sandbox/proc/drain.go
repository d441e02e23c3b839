package proc

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Drain returns a reader of a pipe or terminal with a read deadline. After the deadline it still reads
// pending bytes without waiting, because a busy machine may read late what was written in time.
func Drain(file *os.File) io.Reader { return &deadlineReader{file: file, lateBytes: maxLate} }

// maxLate bounds the bytes read after the deadline. A pipe holds at most 1 MiB (pipe(7)).
const maxLate = 1 << 20

type deadlineReader struct {
	file      *os.File
	lateBytes int
}

func (d *deadlineReader) Read(to []byte) (n int, err error) {
	n, err = d.file.Read(to)
	if !errors.Is(err, os.ErrDeadlineExceeded) || d.lateBytes == 0 {
		return n, err
	}
	n, err = readNow(d.file, to[:min(len(to), d.lateBytes)])
	d.lateBytes -= n
	return n, err
}

// readNow reads without waiting. Without data it returns os.ErrDeadlineExceeded.
func readNow(file *os.File, to []byte) (n int, err error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := conn.Control(func(fd uintptr) {
		for {
			if n, err = unix.Read(int(fd), to); err != unix.EINTR {
				return
			}
		}
	})
	switch {
	case controlErr != nil:
		return 0, controlErr
	case err == unix.EAGAIN:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
