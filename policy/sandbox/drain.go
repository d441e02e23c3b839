package sandbox

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Drain returns a reader of a pipe or a terminal that has a read deadline. After the
// deadline it reads what is in there already, without waiting: on a busy machine it may
// pass before this process comes to read what a command wrote in time.
func Drain(file *os.File) io.Reader { return &drain{file: file, left: mostLate} }

// mostLate bounds how many bytes are read after the deadline: a pipe holds no more (1 MiB,
// pipe(7)), unless somebody goes on writing.
const mostLate = 1 << 20

type drain struct {
	file *os.File
	left int
}

func (d *drain) Read(to []byte) (n int, err error) {
	n, err = d.file.Read(to)
	if !errors.Is(err, os.ErrDeadlineExceeded) || d.left == 0 {
		return n, err
	}
	n, err = readNow(d.file, to[:min(len(to), d.left)])
	d.left -= n
	return n, err
}

// readNow reads without waiting. The error is os.ErrDeadlineExceeded if nothing is there.
func readNow(file *os.File, to []byte) (n int, err error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := conn.Control(func(fd uintptr) {
		for n, err = unix.Read(int(fd), to); err == unix.EINTR; n, err = unix.Read(int(fd), to) {
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == unix.EAGAIN:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
