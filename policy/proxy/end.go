package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// interceptedConn is a client's connection with TLS terminated by the proxy.
type interceptedConn struct {
	net.Conn
	early  *bufio.Reader // holds bytes received with CONNECT
	target reach.Target
	policy.HostDecision
	forget func() bool // keeps the proxy's Close from closing the connection
}

func (e *interceptedConn) Read(to []byte) (int, error) {
	if e.early.Buffered() > 0 {
		return e.early.Read(to)
	}
	return e.Conn.Read(to)
}

func (e *interceptedConn) Close() error {
	e.forget()
	return e.Conn.Close()
}

var errOtherName = errors.New("another server name than the tunnel's")

// intercept completes the TLS handshake in place of the target. It passes the connection to the server
// for requests in intercepted tunnels.
func (p *Proxy) intercept(w http.ResponseWriter, r *http.Request, t reach.Target, d policy.HostDecision) {
	p.work.Add(1)
	defer p.work.Done()
	config, err := p.tlsConfigFor(t)
	if err != nil {
		p.answer(w, r, reply{status: http.StatusBadGateway, errorText: "proxy_internal_error", phrase: "agent-ci can't end TLS", body: "agent-ci could not end the TLS of this tunnel.\n"})
		return
	}
	client, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	conn := &interceptedConn{Conn: client, early: early.Reader, target: t, HostDecision: d}
	conn.forget = context.AfterFunc(p.ctx, func() { _ = client.Close() })
	_ = client.SetDeadline(time.Now().Add(p.limits.header))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = conn.Close()
		return
	}
	over := tls.Server(conn, config)
	if err := over.HandshakeContext(p.ctx); err != nil {
		p.refuseHandshake(conn, err)
		_ = conn.Close()
		return
	}
	_ = client.SetDeadline(time.Time{})
	if !p.interceptor.take(over) {
		_ = conn.Close()
	}
}

// tlsConfigFor returns the TLS configuration with which the proxy acts as the target.
func (p *Proxy) tlsConfigFor(t reach.Target) (*tls.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cached := p.tlsConfigs[t]; cached != nil {
		return cached, nil
	}
	if p.options.Authority == nil {
		return nil, errors.New("there is no certificate authority for the hosts of credentials")
	}
	leaf, err := p.options.Authority.Leaf(t.Host())
	if err != nil {
		return nil, err
	}
	p.tlsConfigs[t] = &tls.Config{
		Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if name := hello.ServerName; name != "" && !strings.EqualFold(name, t.Host()) {
				_, err := p.recordProblem(t, "The TLS inside the tunnel is for another server name.")
				return nil, errors.Join(errOtherName, err)
			}
			return nil, nil
		},
	}
	return p.tlsConfigs[t], nil
}

// recordProblem records the reason why an intercepted tunnel was not used.
func (p *Proxy) recordProblem(t reach.Target, reason string) (Request, error) {
	d := policy.NotTheTarget(p.options.Credentials.Names(t), reason)
	asked := Request{Protocol: reach.HTTPS, Target: t.String(), HostDecision: d}
	return asked, p.options.Observe(asked)
}

// refuseHandshake records a connection without TLS and answers the client.
func (p *Proxy) refuseHandshake(conn *interceptedConn, err error) {
	plain, isPlain := errors.AsType[tls.RecordHeaderError](err)
	if !isPlain || plain.Conn == nil { // the client did begin with TLS
		return
	}
	asked, err := p.recordProblem(conn.target, "Inside the tunnel is no TLS.")
	a := refusal(asked)
	if err != nil {
		a = recordFailureReply
	}
	p.writeRaw(conn, a, "")
}

// inside is the HTTP server for requests in intercepted tunnels, and its listener.
type inside struct {
	server *http.Server
	handed chan net.Conn // the next connection to accept
	slots  chan struct{} // one element per request in progress
	end    <-chan struct{}
	addr   net.Addr
}

// tunnelOf is the context key of a request's *interceptedConn.
type tunnelOf struct{}

const (
	// maxStreams bounds the simultaneous requests on a connection of HTTP/2. Further ones wait.
	maxStreams = 16
	// maxInterceptedRequests bounds the simultaneous requests of all clients. Further ones wait.
	maxInterceptedRequests = 256
	// maxWaitingHeader bounds the header of a waiting request, in bytes.
	maxWaitingHeader = 32 << 10
)

// newInside returns the server for requests in intercepted tunnels.
func (p *Proxy) newInside(addr net.Addr) *inside {
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	server := &http.Server{
		Handler: http.HandlerFunc(p.serveInside), Protocols: both, ReadHeaderTimeout: p.limits.header, IdleTimeout: p.limits.idle, MaxHeaderBytes: maxWaitingHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams}, DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return p.ctx }, ConnState: p.count,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, tunnelOf{}, conn.(*tls.Conn).NetConn())
		},
	}
	return &inside{server, make(chan net.Conn), make(chan struct{}, maxInterceptedRequests), p.ctx.Done(), addr}
}

// take passes a connection to the server and reports success.
func (i *inside) take(conn net.Conn) bool {
	select {
	case i.handed <- conn:
		return true
	case <-i.end:
		return false
	}
}

// Accept returns the next connection of take. With Close and Addr it makes i a net.Listener.
func (i *inside) Accept() (net.Conn, error) {
	select {
	case conn := <-i.handed:
		return conn, nil
	case <-i.end:
		return nil, net.ErrClosed
	}
}

func (i *inside) Close() error   { return nil }
func (i *inside) Addr() net.Addr { return i.addr }
