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
	if s.conn == nil || s.hasMachineNetwork {
		return nil, errors.New("there is no loopback of the commands' own")
	}
	socket, err := s.conn.requestSocket()
	if err != nil {
		return nil, fmt.Errorf("make a socket in the sandbox: %w", err)
	}
	defer socket.Close() // the connection has a descriptor of its own
	conn, err := connect(ctx, socket, port)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d in the sandbox: %w", port, err)
	}
	return conn, nil
}

// connect connects a socket of the sandbox to a port of 127.0.0.1.
func connect(ctx context.Context, socket *os.File, port int) (net.Conn, error) {
	if err := startConnecting(socket, port); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	if err := awaitConnection(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if isSelfConnection(conn) {
		return nil, errors.Join(unix.ECONNREFUSED, conn.Close())
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
	var connectErr error
	err = raw.Control(func(fd uintptr) {
		connectErr = unix.Connect(int(fd), &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	})
	if errors.Is(connectErr, unix.EINPROGRESS) {
		connectErr = nil
	}
	return errors.Join(err, connectErr)
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
	defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })() // a past deadline ends the wait
	var connectErr error
	err = raw.Write(func(fd uintptr) (done bool) {
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && number != 0 {
			err = unix.Errno(number)
		}
		if connectErr = err; err != nil {
			return true
		}
		_, err = unix.Getpeername(int(fd))
		return err == nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, connectErr)
}

// requestSocket asks the supervisor for a TCP socket and waits for it.
func (conn *supervisorConn) requestSocket() (*os.File, error) {
	conn.socketLock.Lock()
	defer conn.socketLock.Unlock()
	if err := conn.send(stage.Request{Socket: true}); err != nil {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case reply := <-conn.socketReplies:
		return reply.socket, reply.err
	case <-conn.supervisorExited:
		return nil, errGone
	}
}

// socketReply is the supervisor's answer to a request for a socket.
type socketReply struct {
	socket *os.File
	err    error
}

// passSocket passes an answer, whose only file is the socket, to requestSocket.
func (conn *supervisorConn) passSocket(event stage.Event, files []*os.File) {
	reply := socketReply{err: errorOf(event)}
	switch {
	case reply.err != nil: // it refused
	case len(files) == 1:
		reply.socket, files = files[0], nil
	default:
		reply.err = errors.New("the supervisor gave none")
	}
	closeAll(files)
	select {
	case conn.socketReplies <- reply:
	default: // requestSocket no longer waits
		if reply.socket != nil {
			_ = reply.socket.Close()
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
