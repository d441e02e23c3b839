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
	allowPrivate bool
}

const (
	// upstreamIdleTime is the lifetime of an unused connection. It is shorter than usual server
	// timeouts, so few requests meet a closing connection.
	upstreamIdleTime = 45 * time.Second
	// maxReceiveBuffer bounds the buffer for an answer with a slow reader, in bytes.
	maxReceiveBuffer = 1 << 20
)

// upstreamPool returns the pool of connections to the target of a tunnel.
func (p *Proxy) upstreamPool(tunnel *interceptedConn) *http.Transport {
	key := poolKey{tunnel.target, tunnel.Private}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cached := p.upstreams[key]; cached != nil {
		return cached
	}
	var roots *x509.CertPool
	if p.options.Roots != nil {
		roots = p.options.Roots(key.Target)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	p.upstreams[key] = &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dialPooled(ctx, key) },
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: key.Host(), MinVersion: tls.VersionTLS12},
		Protocols:       protocols, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: maxReceiveBuffer},
		TLSHandshakeTimeout: p.limits.connect, IdleConnTimeout: upstreamIdleTime, ExpectContinueTimeout: time.Second,
		MaxConnsPerHost: p.limits.connections, MaxIdleConnsPerHost: p.limits.connections,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, WriteBufferSize: 16 << 10, ReadBufferSize: 16 << 10,
	}
	return p.upstreams[key]
}

// dialPooled dials a connection for the pool. The proxy's Close closes the connection.
func (p *Proxy) dialPooled(ctx context.Context, key poolKey) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	conn, _, err := p.connect(ctx, key.Target, key.allowPrivate, p.tunnelVia)
	if err != nil {
		return nil, err
	}
	return p.closeAtEnd(conn), nil
}
