package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Dial connects to a port of the commands' loopback, 127.0.0.1. The socket is created inside the
// sandbox, which limits its reach.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	if s.inside == nil || s.hasMachineNetwork {
		return nil, errors.New("there is no loopback of the commands' own")
	}
	socket, err := s.inside.socketInside()
	if err != nil {
		return nil, fmt.Errorf("make a socket in the sandbox: %w", err)
	}
	defer socket.Close() // the connection has a descriptor of its own
	err = startConnecting(socket, port)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d in the sandbox: %w", port, err)
	}
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d in the sandbox: %w", port, err)
	}
	if err := awaitConnection(ctx, conn); err != nil {
		return nil, fmt.Errorf("connect to port %d in the sandbox: %w", port, errors.Join(err, conn.Close()))
	}
	if isSelfConnection(conn) {
		return nil, fmt.Errorf("connect to port %d in the sandbox: %w", port, errors.Join(unix.ECONNREFUSED, conn.Close()))
	}
	return conn, nil
}

// isSelfConnection reports whether a socket is connected to itself. That happens without a listener if
// the kernel picks the same port for both ends (RFC 9293, section 3.5, simultaneous open).
func isSelfConnection(conn net.Conn) bool {
	return conn.LocalAddr().String() == conn.RemoteAddr().String()
}

// startConnecting connects a non-blocking socket to a port of 127.0.0.1, without waiting.
func startConnecting(socket *os.File, port int) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.Connect(int(fd), &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	})
	if errors.Is(refused, unix.EINPROGRESS) {
		refused = nil
	}
	return errors.Join(err, refused)
}

// awaitConnection waits until a socket is connected, or ctx ends.
func awaitConnection(ctx context.Context, conn net.Conn) error {
	tcp, is := conn.(*net.TCPConn)
	if !is {
		return errors.New("the socket is not one of TCP")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })()
	var refused error
	err = raw.Write(func(fd uintptr) (done bool) {
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && number != 0 {
			err = unix.Errno(number)
		}
		if refused = err; err != nil {
			return true
		}
		_, err = unix.Getpeername(int(fd))
		return err == nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, refused)
}

// socketInside asks the supervisor for a TCP socket and waits for it.
func (i *supervisorConn) socketInside() (*os.File, error) {
	i.socketLock.Lock()
	defer i.socketLock.Unlock()
	if err := i.send(stage.Request{Socket: true}); err != nil {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case made := <-i.sockets:
		return made.file, made.err
	case <-i.supervisorGone:
		return nil, errGone
	}
}

// socketReply is the supervisor's answer to a request for a socket.
type socketReply struct {
	file *os.File
	err  error
}

// takeSocket passes an answer, whose only file is the socket, to socketInside.
func (i *supervisorConn) takeSocket(e stage.Event, files []*os.File) {
	made := socketReply{err: errorOf(e)}
	if len(files) == 1 && made.err == nil {
		made.file, files = files[0], nil
	} else if made.err == nil {
		made.err = errors.New("the supervisor gave none")
	}
	closeAll(files)
	select {
	case i.sockets <- made:
	default: // socketInside no longer waits
		if made.file != nil {
			_ = made.file.Close()
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
