// Package proxy owns the HTTP proxy between confined commands and allowed hosts. It serves CONNECT
// and requests with an absolute target (RFC 9110, 9.3.6 and 7.1) on a given listener, and dials
// itself or through another proxy. Options.Hosts allows hosts; the proxy itself blocks local
// addresses. It removes hop-by-hop headers. For hosts of credentials it terminates TLS, checks
// requests with package credential, inserts values, and removes them from answers.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// Options configures a proxy.
type Options struct {
	// Hosts decides about a target by its name, before any lookup or connection. Its Credentials are inserted
	// into requests to their hosts. The proxy terminates TLS there with certificates of Authority.
	Hosts     policy.Hosts
	Authority *authority.Authority
	// Observe records each decision before it has an effect. An error refuses the request. It is called
	// concurrently.
	Observe func(Request) error

	// Resolve and Dial replace the machine's own resolver and dialer. Nil uses the machine's. The proxy
	// checks their input and output in any case.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, address netip.AddrPort) (net.Conn, error)

	// Via returns the URL of the proxy to use for a target, with user and password, or nil. That
	// proxy resolves names, so addresses stay unchecked.
	Via func(reach.Target) *url.URL
	// viaRoots lists the authorities for a proxy of Via with TLS. Nil uses the machine's.
	viaRoots *x509.CertPool

	// Roots returns the authorities for a target with terminated TLS. Nil uses the machine's.
	Roots func(reach.Target) *x509.CertPool
	// Used is called before a credential is sent. An error refuses the request. It is called
	// concurrently.
	Used func(name string, to reach.Target) error

	limits limits // zero values mean defaultLimits
}

// Request is a request of a command and its decision.
type Request struct {
	Protocol string // reach.HTTP, reach.HTTPS
	Target   string // host and port; as received if invalid
	Via      string // host and port of the proxy on the way; "" for none
	policy.HostDecision
}

// limits bounds the proxy's work for commands.
type limits struct {
	connections int           // simultaneous connections; more wait
	header      time.Duration // time to receive a request's header
	connect     time.Duration // time to resolve and dial
	idle        time.Duration // time without a byte in either direction
	bytes       int64         // size of a body, or of one direction of a tunnel
}

// defaultLimits suit the downloads of a build.
var defaultLimits = limits{connections: 128, header: 10 * time.Second, connect: 20 * time.Second, idle: 5 * time.Minute, bytes: 8 << 30}

// maxHeader bounds the header of a request and of an answer, in bytes.
const maxHeader = 64 << 10

// Proxy serves until Close.
type Proxy struct {
	options     Options
	limits      limits
	server      *http.Server
	guard       *credential.Guard // nil without credentials
	interceptor *interceptServer
	ctx         context.Context // ends with Close
	cancel      context.CancelFunc
	work        sync.WaitGroup // servers, connections and hijacked connections

	mu         sync.Mutex
	tlsConfigs map[reach.Target]*tls.Config
	upstreams  map[poolKey]*http.Transport
	hiders     map[string]*credential.Guard // by the user and password of another proxy
}

// Start serves on l until Close, which closes l.
func Start(l net.Listener, o Options) *Proxy {
	p := &Proxy{
		options: o, limits: cmp.Or(o.limits, defaultLimits), guard: credential.NewGuard(o.Hosts.Credentials),
		tlsConfigs: make(map[reach.Target]*tls.Config), upstreams: make(map[poolKey]*http.Transport), hiders: make(map[string]*credential.Guard),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	onlyHTTP1 := new(http.Protocols)
	onlyHTTP1.SetHTTP1(true)
	p.server = &http.Server{
		Handler: p, Protocols: onlyHTTP1, ReadHeaderTimeout: p.limits.header, IdleTimeout: p.limits.idle, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return p.ctx }, ConnState: p.trackConnection,
	}
	guarded := &limitedListener{l, make(chan struct{}, p.limits.connections), p.ctx.Done()}
	p.work.Go(func() { _ = p.server.Serve(guarded) }) // ends with Close
	p.interceptor = p.newInterceptServer(l.Addr())
	p.work.Go(func() { _ = p.interceptor.server.Serve(p.interceptor) }) // ends with Close
	return p
}

// trackConnection tracks the server's connections for Close. A hijacked connection is tracked by its new
// owner.
func (p *Proxy) trackConnection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.work.Add(1)
	case http.StateClosed, http.StateHijacked:
		p.work.Done()
	}
}

// Close closes every connection and waits for the handlers.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.server.Close()
	_ = p.interceptor.server.Close()
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, upstream := range p.upstreams {
		upstream.CloseIdleConnections()
	}
}

// ServeHTTP decides about a request to the proxy and records the decision. It then refuses the request,
// intercepts or tunnels the connection, or forwards the request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protocol := reach.HTTP
	if r.Method == http.MethodConnect {
		protocol = reach.HTTPS
	}
	target, problem := parseTarget(protocol, r)
	request := Request{Protocol: protocol, Target: clip.Bytes(r.URL.Host, 200), HostDecision: policy.UnreadableTargetRefusal(problem)}
	if problem == "" {
		request = p.decideRequest(r, target)
	}
	if err := p.options.Observe(request); err != nil {
		p.respond(w, r, notRecordedReply)
		return
	}
	switch {
	case !request.Allowed:
		p.respond(w, r, newRefusalReply(request))
	case len(p.options.Hosts.Credentials.Names(target)) > 0: // to put credentials in, the proxy must end TLS
		p.intercept(w, r, target, request.HostDecision)
	case protocol == reach.HTTPS:
		p.tunnel(w, r, target, request.Private)
	default:
		p.forward(w, r, target, request.Private)
	}
}

// decideRequest decides about a request with a valid target. If an allowed request goes through another
// proxy, it also sets Via, and refuses TRACE.
func (p *Proxy) decideRequest(r *http.Request, t reach.Target) Request {
	request := Request{Protocol: t.Protocol, Target: t.String(), HostDecision: p.decide(r, t)}
	via := p.proxyFor(t)
	if via == nil || !request.Allowed {
		return request
	}
	if strings.EqualFold(r.Method, http.MethodTrace) { // some servers ignore the case
		request.HostDecision = policy.TraceViaProxyRefusal()
	} else {
		request.Via = viaAddress(via)
	}
	return request
}

// decide decides about a request to the proxy by its target. It also refuses a request with a
// placeholder.
func (p *Proxy) decide(r *http.Request, t reach.Target) policy.HostDecision {
	d := p.options.Hosts.Decide(t)
	switch {
	case !d.Allowed && reach.IsPrivate(t.Addr) && d.Rule == "": // no rule of the list is about it
		return refusePrivate(t, d)
	case !d.Allowed:
		return d
	}
	if refused := p.guard.RefusePlaceholders(r); refused != nil {
		return policy.CredentialUseRefusal(refused)
	}
	return d
}

// parseTarget parses the target in the first line of a request and ignores the Host header. problem
// completes a sentence about an invalid target, and is "" for a valid one.
func parseTarget(protocol string, r *http.Request) (t reach.Target, problem string) {
	switch {
	case r.URL.Host == "":
		return t, "is not in its first line"
	case r.URL.User != nil:
		return t, "has a user or a password before the host"
	case protocol == reach.HTTP && r.URL.Scheme != "http":
		return t, "is not http; https goes through CONNECT"
	}
	t, err := reach.ParseTarget(protocol, r.URL.Host)
	if err != nil {
		return t, err.Error()
	}
	return t, ""
}

// limitedListener bounds the simultaneous connections of a listener. Accept fails once done is closed.
type limitedListener struct {
	net.Listener
	slots chan struct{}
	done  <-chan struct{}
}

// Accept waits for a free slot before it accepts a connection.
func (listener *limitedListener) Accept() (net.Conn, error) {
	select {
	case listener.slots <- struct{}{}:
	case <-listener.done:
		return nil, net.ErrClosed
	}
	conn, err := listener.Listener.Accept()
	if err != nil {
		<-listener.slots
		return nil, err
	}
	return &slotConn{closingConn{conn, sync.OnceFunc(func() { <-listener.slots })}}, nil
}

// closingConn is a connection whose Close also calls closed.
type closingConn struct {
	net.Conn
	closed func()
}

func (conn closingConn) Close() error {
	defer conn.closed()
	return conn.Conn.Close()
}

// closeAtEnd returns conn as a connection that the proxy's Close closes.
func (p *Proxy) closeAtEnd(conn net.Conn) closingConn {
	stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() })
	return closingConn{conn, func() { stop() }}
}

// slotConn is a connection that occupies a slot until its close.
type slotConn struct{ closingConn }

// CloseWrite closes the sending direction.
func (conn *slotConn) CloseWrite() error { return closeWrite(conn.Conn) }

// closeWrite closes the sending direction of c, or all of c if it has no such method.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
