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
	closingConn
	early  *bufio.Reader // holds bytes received with CONNECT
	target reach.Target
	policy.HostDecision
}

func (conn *interceptedConn) Read(to []byte) (int, error) {
	if conn.early.Buffered() > 0 {
		return conn.early.Read(to)
	}
	return conn.Conn.Read(to)
}

var errOtherName = errors.New("another server name than the tunnel's")

// intercept completes the TLS handshake in place of the target. It passes the connection to the server
// for requests in intercepted tunnels.
func (p *Proxy) intercept(w http.ResponseWriter, r *http.Request, t reach.Target, d policy.HostDecision) {
	p.work.Add(1)
	defer p.work.Done()
	config, err := p.tlsConfigFor(t)
	if err != nil {
		p.respond(w, r, reply{status: http.StatusBadGateway, errorText: "proxy_internal_error", phrase: "agent-ci can't end TLS", body: "agent-ci could not end the TLS of this tunnel.\n"})
		return
	}
	client, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	conn := &interceptedConn{p.closeAtEnd(client), early.Reader, t, d}
	_ = client.SetDeadline(time.Now().Add(p.limits.header))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = conn.Close()
		return
	}
	tlsConn := tls.Server(conn, config)
	if err := tlsConn.HandshakeContext(p.ctx); err != nil {
		p.refuseHandshake(conn, err)
		_ = conn.Close()
		return
	}
	_ = client.SetDeadline(time.Time{})
	if !p.interceptor.handOver(tlsConn) {
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

// recordProblem records why an intercepted tunnel was not used, and returns the refused request.
func (p *Proxy) recordProblem(t reach.Target, reason string) (Request, error) {
	d := policy.OtherTargetRefusal(p.options.Hosts.Credentials.Names(t), reason)
	request := Request{Protocol: reach.HTTPS, Target: t.String(), HostDecision: d}
	return request, p.options.Observe(request)
}

// refuseHandshake records a connection without TLS and answers the client.
func (p *Proxy) refuseHandshake(conn *interceptedConn, err error) {
	plain, isPlain := errors.AsType[tls.RecordHeaderError](err)
	if !isPlain || plain.Conn == nil { // the client did begin with TLS
		return
	}
	request, err := p.recordProblem(conn.target, "Inside the tunnel is no TLS.")
	reply := newRefusalReply(request)
	if err != nil {
		reply = notRecordedReply
	}
	p.writeRaw(conn, reply, "")
}

// interceptServer is the HTTP server for requests in intercepted tunnels, and its listener.
type interceptServer struct {
	server      *http.Server
	connections chan net.Conn // the next connection to accept
	slots       chan struct{} // one element per request in progress
	done        <-chan struct{}
	addr        net.Addr
}

// tunnelKey is the context key of a request's *interceptedConn.
type tunnelKey struct{}

const (
	// maxStreams bounds the simultaneous requests on a connection of HTTP/2. Further ones wait.
	maxStreams = 16
	// maxInterceptedRequests bounds the simultaneous requests of all clients. Further ones wait.
	maxInterceptedRequests = 256
	// maxWaitingHeader bounds the header of a waiting request, in bytes.
	maxWaitingHeader = 32 << 10
)

// newInterceptServer returns the server for requests in intercepted tunnels.
func (p *Proxy) newInterceptServer(addr net.Addr) *interceptServer {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	server := &http.Server{
		Handler: http.HandlerFunc(p.serveIntercepted), Protocols: protocols, ReadHeaderTimeout: p.limits.header, IdleTimeout: p.limits.idle, MaxHeaderBytes: maxWaitingHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams}, DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return p.ctx }, ConnState: p.trackConnection,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, tunnelKey{}, conn.(*tls.Conn).NetConn())
		},
	}
	return &interceptServer{server, make(chan net.Conn), make(chan struct{}, maxInterceptedRequests), p.ctx.Done(), addr}
}

// handOver passes a connection to the server and reports success.
func (server *interceptServer) handOver(conn net.Conn) bool {
	select {
	case server.connections <- conn:
		return true
	case <-server.done:
		return false
	}
}

// Accept returns the next connection passed to handOver. With Close and Addr it makes the server its own
// net.Listener.
func (server *interceptServer) Accept() (net.Conn, error) {
	select {
	case conn := <-server.connections:
		return conn, nil
	case <-server.done:
		return nil, net.ErrClosed
	}
}

func (server *interceptServer) Close() error   { return nil }
func (server *interceptServer) Addr() net.Addr { return server.addr }
