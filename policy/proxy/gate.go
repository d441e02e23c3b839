package proxy

import (
	"net"
	"sync"
)

// gate lets so many connections in at once.
type gate struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  sync.Once
}

func newGate(l net.Listener, connections int) *gate {
	return &gate{Listener: l, places: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept waits until there is a place.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.places <- struct{}{}:
	case <-g.closed:
		return nil, net.ErrClosed
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		<-g.places
		return nil, err
	}
	return &guest{Conn: conn, leave: sync.OnceFunc(func() { <-g.places })}, nil
}

func (g *gate) Close() error {
	g.close.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// guest is a connection that has a place until it is closed.
type guest struct {
	net.Conn
	leave func()
}

func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}

// CloseWrite says that nothing more comes from this side.
func (g *guest) CloseWrite() error { return closeWrite(g.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
