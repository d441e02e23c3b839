package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func dialer(to net.Listener) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", to.Addr().String())
	}
}

// serve answers each connection of l, until the test ends.
func serve(t *testing.T, l net.Listener, answer func(net.Conn)) {
	t.Helper()
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				answer(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); work.Wait() })
}

func connect(t *testing.T, to net.Listener) *net.TCPConn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", to.Addr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// A side that has said all still hears what the other says.
func TestForwardsBothDirections(t *testing.T) {
	far, near := listen(t), listen(t)
	serve(t, far, func(conn net.Conn) {
		all, _ := io.ReadAll(conn)
		_, _ = conn.Write(bytes.ToUpper(all))
	})
	f := Start(near, dialer(far))
	defer f.Close()
	var work sync.WaitGroup
	for range 20 {
		conn := connect(t, near)
		work.Go(func() {
			sent := bytes.Repeat([]byte("abc\x00"), 100_000)
			go func() { _, _ = conn.Write(sent); _ = conn.CloseWrite() }()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, bytes.ToUpper(sent)) {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
		})
	}
	work.Wait()
}

func TestResetsUnansweredConnection(t *testing.T) {
	near := listen(t)
	f := Start(near, func(context.Context) (net.Conn, error) { return nil, errors.New("nobody") })
	defer f.Close()
	conn, err := net.Dial("tcp", near.Addr().String())
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it ended as %v", err)
	}
}

func TestRefuseKeepsConnections(t *testing.T) {
	far, near := listen(t), listen(t)
	serve(t, far, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	f := Start(near, dialer(far))
	defer f.Close()
	conn := connect(t, near)
	echo(t, conn)
	f.Refuse()
	must.Fail(t, "", must.Err(net.Dial("tcp", near.Addr().String())), "there is a new connection")
	echo(t, conn)
}

func echo(t *testing.T, conn net.Conn) {
	t.Helper()
	got := make([]byte, 5)
	_, err := conn.Write([]byte("hello"))
	if err == nil {
		_, err = io.ReadFull(conn, got)
	}
	if err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
}

// Close waits for nobody who says nothing, and for nobody who does not let himself be reached.
func TestCloseEndsOpenConnections(t *testing.T) {
	far, near := listen(t), listen(t)
	serve(t, far, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	f := Start(near, dialer(far))
	conn := connect(t, near)
	echo(t, conn)
	f.Close()
	must.Fail(t, "", must.Err(conn.Read(make([]byte, 1))), "it is open")

	asked := make(chan struct{})
	slow := Start(listen(t), func(ctx context.Context) (net.Conn, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	connect(t, slow.listener)
	<-asked
	slow.Close()
}

// No more than so many are carried at once; the next one waits for its turn.
func TestBoundsConnections(t *testing.T) {
	far, near := listen(t), listen(t)
	serve(t, far, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	f := Start(near, dialer(far))
	defer f.Close()
	conns := make([]*net.TCPConn, maxConnections)
	for i := range conns {
		conns[i] = connect(t, near)
		echo(t, conns[i])
	}
	late := connect(t, near)
	must.Same(t, maxConnections, len(f.slots))
	must.Do(t, conns[0].Close())
	echo(t, late)
}

// What is carried on may ignore that its client is gone.
func TestGoneClientsFreeSlots(t *testing.T) {
	far, near := listen(t), listen(t)
	over, came := make(chan struct{}), make(chan struct{})
	serve(t, far, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1))
		came <- struct{}{}
		<-over
	})
	defer close(over)
	f := Start(near, dialer(far))
	defer f.Close()
	one := func() *net.TCPConn {
		conn := connect(t, near)
		must.Get(conn.Write([]byte("x")))(t)
		<-came
		return conn
	}
	stays := one()
	for range 2 * maxConnections {
		must.Do(t, one().Close())
	}
	must.Do(t, must.Err(stays.Write([]byte("y"))), "a client that is there")
	if got := len(f.slots); got > maxConnections {
		t.Errorf("%d places are taken", got)
	}
}
