package proxy

import (
	"net"
	"sync"
)

// gate lets so many connections in at once, until end is closed.
type gate struct {
	net.Listener
	places chan struct{}
	end    <-chan struct{}
}

// Accept waits until there is a place.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.places <- struct{}{}:
	case <-g.end:
		return nil, net.ErrClosed
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		<-g.places
		return nil, err
	}
	return &guest{Conn: conn, leave: sync.OnceFunc(func() { <-g.places })}, nil
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
