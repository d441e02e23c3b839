package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// poolKey is the key of pooled connections.
type poolKey struct {
	reach.Target
	private bool
}

const (
	// idleUpstream is the lifetime of an unused connection. It is shorter than usual server
	// timeouts, so few requests meet a closing connection.
	idleUpstream = 45 * time.Second
	// maxReceived bounds the buffer for an answer with a slow reader, in bytes.
	maxReceived = 1 << 20
)

// upstream returns the pool of connections to the target of a tunnel.
func (p *Proxy) upstream(tunnel *interceptedConn) *http.Transport {
	to := poolKey{tunnel.target, tunnel.Private}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cached := p.upstreams[to]; cached != nil {
		return cached
	}
	var roots *x509.CertPool
	if p.options.Roots != nil {
		roots = p.options.Roots(to.Target)
	}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	p.upstreams[to] = &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dialForGood(ctx, to) },
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: to.Host(), MinVersion: tls.VersionTLS12},
		Protocols:       both, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: maxReceived},
		TLSHandshakeTimeout: p.limits.connect, IdleConnTimeout: idleUpstream, ExpectContinueTimeout: time.Second,
		MaxConnsPerHost: p.limits.connections, MaxIdleConnsPerHost: p.limits.connections,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, WriteBufferSize: 16 << 10, ReadBufferSize: 16 << 10,
	}
	return p.upstreams[to]
}

// dialForGood dials a connection for the pool. The proxy's Close closes the connection.
func (p *Proxy) dialForGood(ctx context.Context, to poolKey) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	conn, _, err := p.connect(ctx, to.Target, to.private, false)
	if err != nil {
		return nil, err
	}
	return &pooledConn{conn, context.AfterFunc(p.ctx, func() { _ = conn.Close() })}, nil
}

// pooledConn is a pooled connection.
type pooledConn struct {
	net.Conn
	forget func() bool // keeps the proxy's Close from closing the connection
}

func (l *pooledConn) Close() error {
	l.forget()
	return l.Conn.Close()
}
