package stage

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxFrame bounds a request in bytes. Arguments and environment cannot be longer (execve(2)).
const maxFrame = 16 << 20

// conn is the inner end of the control socket, the descriptor ControlFD.
type conn struct {
	sending sync.Mutex
}

// receive reads a frame with its descriptors. It returns io.EOF after the process outside has exited.
func (c *conn) receive() (body []byte, fds []int, err error) {
	header := make([]byte, HeaderSize)
	fds, err = c.receiveHeader(header)
	if err != nil {
		return nil, nil, err
	}
	n := BodySize(header)
	if n > maxFrame {
		return nil, fds, errors.New("a frame is too long")
	}
	body = make([]byte, n)
	return body, fds, c.fill(body)
}

// receiveHeader reads a frame's header with its descriptors.
func (c *conn) receiveHeader(header []byte) (fds []int, err error) {
	oob := make([]byte, unix.CmsgSpace(4*maxStreams))
	for {
		n, oobn, _, _, err := unix.Recvmsg(ControlFD, header, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, os.NewSyscallError("recvmsg", err)
		case n == 0:
			return nil, io.EOF
		}
		fds, err := Descriptors(oob[:oobn])
		return fds, errors.Join(err, c.fill(header[n:]))
	}
}

// Descriptors returns the descriptors in a control message, or nil if there are none.
func Descriptors(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, nil
	}
	return unix.ParseUnixRights(&messages[0])
}

// fill reads until to is full.
func (c *conn) fill(to []byte) error {
	for len(to) > 0 {
		n, err := unix.Read(ControlFD, to)
		switch {
		case errors.Is(err, unix.EINTR): // read again
		case err != nil:
			return os.NewSyscallError("read", err)
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			to = to[n:]
		}
	}
	return nil
}

// send sends a message with descriptors.
func (c *conn) send(message any, descriptors ...int) error {
	frame, err := Frame(message)
	if err != nil {
		return err
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	for len(frame) > 0 {
		n, err := unix.SendmsgN(ControlFD, frame, rights, nil, unix.MSG_NOSIGNAL)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
		if n > 0 {
			frame, rights = frame[n:], nil
		}
	}
	return nil
}

// sendSocket answers a request for a socket with a new, unconnected TCP socket.
func (c *conn) sendSocket() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
	if err != nil {
		return c.send(Event{Socket: true, Error: err.Error()})
	}
	defer unix.Close(fd)
	return c.send(Event{Socket: true}, fd)
}
