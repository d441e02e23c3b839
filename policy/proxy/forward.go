package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// forward sends a plain request as the proxy's own: host from the first line, new framing, no
// hop-by-hop headers. Every request gets its own connection to a checked address.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, t reach.Target, private bool) {
	if r.ContentLength > p.limits.bytes {
		p.respond(w, r, bodyTooLongReply)
		return
	}
	server, via, err := p.connect(r.Context(), t, private, p.dialVia)
	if err != nil {
		p.respond(w, r, dialFailureReply(t, err))
		return
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	idle := p.endWhenIdle(control, cancel)
	defer idle.stop()
	transport := singleRequestTransport(server, via)
	defer transport.CloseIdleConnections()
	body, problem := p.searchBody(r, t, idle)
	if problem != nil {
		p.respond(w, r, *problem)
		return
	}
	finishSearch := p.searchRestAfterAnswer(body, control, cancel)
	r.Body = body
	response, problem := p.roundTrip(ctx, transport, r, t, via, idle)
	if response != nil {
		defer response.Body.Close()
	}
	if problem != nil {
		finishSearch()
	}
	if problem = cmp.Or(body.refusalReply(), problem); problem != nil {
		p.respond(w, r, *problem)
		return
	}
	hider := p.hiderFor(via)
	hider.CleanHeader(response.Header)
	copyEndToEndHeaders(w.Header(), response.Header)
	p.copyAnswer(w, control, response, hider, idle)
	finishSearch()
	if body.refusalReply() != nil {
		panic(http.ErrAbortHandler) // the client must not see a successful answer
	}
}

// copyAnswer copies the status and the body of an answer, whose header is copied already, without the values that
// hider hides.
func (p *Proxy) copyAnswer(w http.ResponseWriter, control *http.ResponseController, response *http.Response, hider *credential.Guard, idle *idleTimer) {
	w.WriteHeader(response.StatusCode)
	if response.ContentLength != 0 {
		_ = control.Flush() // the body may arrive much later
	}
	if err := hider.CopyClean(flushingWriter{w, control}, p.watchedReader(response.Body, idle)); err != nil {
		panic(http.ErrAbortHandler) // the client must see that the answer is incomplete
	}
}

// roundTrip sends a request and returns the answer, or a reply after a failure.
func (p *Proxy) roundTrip(ctx context.Context, transport *http.Transport, r *http.Request, t reach.Target, via *url.URL, idle *idleTimer) (*http.Response, *reply) {
	outgoing := p.outgoingRequest(ctx, r, t, idle)
	searched := p.hiderFor(via) != nil
	if searched {
		outgoing.Header.Set("Accept-Encoding", "identity")
	}
	response, err := transport.RoundTrip(outgoing)
	if err != nil {
		failure := connectFailureReply(t.String(), err)
		switch {
		case errors.Is(err, errTooManyBytes):
			failure = bodyTooLongReply
		case via != nil: // its answer is invalid or late
			failure = connectFailureReply(t.String(), timeoutOr(ctx, nil, invalidAnswer()))
		}
		return nil, &failure
	}
	var problem reply
	switch {
	case via != nil && (response.StatusCode < http.StatusOK || response.StatusCode == http.StatusProxyAuthRequired):
		problem = connectFailureReply(t.String(), viaRefused(response.StatusCode))
	case response.StatusCode < http.StatusOK: // 101: a protocol that the request did not ask for
		problem = connectFailureReply(t.String(), errors.New("no answer"))
	case searched && mayBeCompressedText(response):
		problem = compressedReply
	default:
		return response, nil
	}
	_ = response.Body.Close()
	return nil, &problem
}

// singleRequestTransport returns a transport for a single HTTP/1.1 request over conn, to the target or to via.
func singleRequestTransport(conn net.Conn, via *url.URL) *http.Transport {
	var used atomic.Bool
	var proxy func(*http.Request) (*url.URL, error)
	if via != nil { // conn leads to the proxy and already uses TLS if necessary, so the scheme is http
		proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: via.Host, User: via.User})
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, net.ErrClosed
			}
			return conn, nil
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, ExpectContinueTimeout: time.Second,
	}
}

// outgoingRequest returns the request for the target: own framing, no hop-by-hop headers.
func (p *Proxy) outgoingRequest(ctx context.Context, r *http.Request, t reach.Target, idle *idleTimer) *http.Request {
	target := *r.URL
	target.Host, target.Fragment = t.Entry(), ""
	if t.Addr.Is6() {
		target.Host = t.String()
	}
	out := &http.Request{
		Method: r.Method, URL: &target, Host: target.Host, Header: make(http.Header), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: r.ContentLength,
	}
	if r.ContentLength != 0 {
		out.Body = struct {
			io.Reader
			io.Closer
		}{p.watchedReader(r.Body, idle), r.Body}
	}
	copyEndToEndHeaders(out.Header, r.Header)
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = nil // keeps net/http from adding its own
	}
	return out.WithContext(ctx)
}

// hopByHop lists headers that end at a proxy (RFC 9110, 7.6.1) or address the proxy itself.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Max-Forwards",
}

// connectionOptions returns the header names listed by Connection (RFC 9110, 7.6.1), in canonical
// form.
func connectionOptions(h http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, listed := range h["Connection"] {
			for name := range strings.SplitSeq(listed, ",") {
				if !yield(http.CanonicalHeaderKey(strings.TrimSpace(name))) {
					return
				}
			}
		}
	}
}

// copyEndToEndHeaders copies headers, without the hop-by-hop ones.
func copyEndToEndHeaders(to, from http.Header) {
	maps.Copy(to, from)
	for name := range connectionOptions(from) {
		if name != "Content-Length" {
			delete(to, name)
		}
	}
	for _, name := range hopByHop {
		delete(to, name)
	}
}

// idleReader restarts the idle timer at each read and bounds the bytes.
type idleReader struct {
	from      io.Reader
	idle      *idleTimer
	remaining int64 // bytes
}

// watchedReader returns a reader of from that restarts idle and returns errTooManyBytes after limits.bytes.
func (p *Proxy) watchedReader(from io.Reader, idle *idleTimer) *idleReader {
	return &idleReader{from, idle, p.limits.bytes}
}

// Read reads from the source. It returns errTooManyBytes above the limit.
func (r *idleReader) Read(to []byte) (int, error) {
	n, err := r.from.Read(to)
	if n > 0 {
		r.idle.restart()
	}
	r.remaining -= int64(n)
	if r.remaining < 0 {
		return 0, errTooManyBytes
	}
	return n, err
}

// flushingWriter flushes after each write.
type flushingWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushingWriter) Write(part []byte) (int, error) {
	n, err := f.ResponseWriter.Write(part)
	if err != nil {
		return n, err
	}
	return n, f.control.Flush()
}
