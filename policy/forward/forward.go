// Package forward copies connections from a listener to one destination, for any protocol. A given
// function dials the destination.
package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// maxConnections is the number of simultaneous connections. Further ones wait, one here, the others in
// the kernel. A client that has closed its sending side may have exited. If a connection waits, the
// oldest connection of such a client is closed.
const maxConnections = 256

// connectWait bounds a connection attempt to the destination.
const connectWait = 20 * time.Second

// Forwarder carries connections until Close.
type Forwarder struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	slots    chan struct{}

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	halfClosed []*connection // whose clients closed their sending side, oldest first

	halfClosedSignal chan struct{} // signals that a client has closed its side
}

// connection is a client's connection with its destination.
type connection struct{ from, to net.Conn }

// Start accepts connections of l and forwards each to a connection of dial. Close closes l.
func Start(l net.Listener, dial func(context.Context) (net.Conn, error)) *Forwarder {
	f := &Forwarder{listener: l, dial: dial, slots: make(chan struct{}, maxConnections), halfClosedSignal: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.work.Go(f.accept)
	return f
}

// Refuse closes the listener and keeps existing connections.
func (f *Forwarder) Refuse() { _ = f.listener.Close() }

// Close ends all connections and waits until their goroutines have returned.
func (f *Forwarder) Close() {
	f.cancel()
	f.Refuse()
	f.work.Wait()
}

// accept accepts connections until Refuse or Close.
func (f *Forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, too many open files
			if !f.pauseBeforeRetry() {
				return
			}
			continue
		}
		if !f.takeSlot() {
			_ = conn.Close()
			return
		}
		f.work.Go(func() {
			defer func() { <-f.slots }()
			f.forwardConnection(conn)
		})
	}
}

// takeSlot waits for a free slot. If there is none, it closes the oldest half-closed connection. It returns
// false after Close.
func (f *Forwarder) takeSlot() bool {
	for {
		select {
		case f.slots <- struct{}{}:
			return true
		default:
		}
		halfClosed := f.halfClosedSignal
		if f.closeOldestHalfClosed() {
			halfClosed = nil // wait for the slot of the closed connection, and close no other
		}
		select {
		case f.slots <- struct{}{}:
			return true
		case <-halfClosed:
		case <-f.ctx.Done():
			return false
		}
	}
}

// closeOldestHalfClosed closes the connection whose client closed its sending side first, and reports whether
// there was one.
func (f *Forwarder) closeOldestHalfClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.halfClosed) == 0 {
		return false
	}
	oldest := f.halfClosed[0]
	f.halfClosed = f.halfClosed[1:]
	resetConnection(oldest.from)
	resetConnection(oldest.to)
	return true
}

// markHalfClosed stores that a client has closed its sending side, and wakes takeSlot. Call unmark at the
// end of the connection.
func (f *Forwarder) markHalfClosed(c *connection) (unmark func()) {
	f.mu.Lock()
	f.halfClosed = append(f.halfClosed, c)
	f.mu.Unlock()
	select {
	case f.halfClosedSignal <- struct{}{}:
	default:
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.halfClosed = slices.DeleteFunc(f.halfClosed, func(other *connection) bool { return other == c })
	}
}

// pauseBeforeRetry waits before the next attempt. It reports false after Close.
func (f *Forwarder) pauseBeforeRetry() bool {
	select {
	case <-time.After(50 * time.Millisecond):
		return true
	case <-f.ctx.Done():
		return false
	}
}

// forwardConnection copies a connection to the destination and back. It resets the connection if nobody answers there.
func (f *Forwarder) forwardConnection(from net.Conn) {
	defer f.closeAtEnd(from)()
	ctx, cancel := context.WithTimeout(f.ctx, connectWait)
	to, err := f.dial(ctx)
	cancel()
	if err != nil {
		resetConnection(from)
		return
	}
	defer f.closeAtEnd(to)()
	var answer sync.WaitGroup
	answer.Go(func() { copyUntilEnd(from, to) })
	copyUntilEnd(to, from)
	unmark := f.markHalfClosed(&connection{from, to})
	answer.Wait()
	unmark()
}

// copyUntilEnd copies until the end of from and then closes the sending side of to. A failure resets to.
func copyUntilEnd(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		resetConnection(to)
		resetConnection(from)
		return
	}
	if half, can := to.(interface{ CloseWrite() error }); can {
		_ = half.CloseWrite()
	}
}

// resetConnection closes a connection so that the peer sees an error.
func resetConnection(conn net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// closeAtEnd closes a connection at Close, or when the returned function is called.
func (f *Forwarder) closeAtEnd(conn net.Conn) (closeNow func()) {
	stop := context.AfterFunc(f.ctx, func() { _ = conn.Close() })
	return func() {
		stop()
		_ = conn.Close()
	}
}
