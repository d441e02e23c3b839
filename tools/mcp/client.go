package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Remote is a job's server at an address.
type Remote struct {
	URL     string
	Headers map[string]string
	Bearer  string // token for Authorization; "" for none
}

// maxRedirects is how many redirects are followed, on the host itself.
const maxRedirects = 5

// NewClient returns a client that only contacts the address's host, with headers and token. The
// error is for people.
func NewClient(remote Remote) (*http.Client, error) {
	address, err := checkURL(remote.URL)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	for name, value := range remote.Headers {
		headers.Set(name, value)
	}
	if remote.Bearer != "" {
		headers.Set("Authorization", "Bearer "+remote.Bearer)
	}
	return &http.Client{
		Transport: &oneHost{base: directTransport(address.Scheme), origin: originOf(address), headers: headers},
		CheckRedirect: func(request *http.Request, before []*http.Request) error {
			if originOf(request.URL) != originOf(address) {
				return fmt.Errorf("it redirects to %s, and only %s may be reached; write that address in url if it is right", request.URL.Host, address.Host)
			}
			if len(before) > maxRedirects {
				return errors.New("it redirects without end")
			}
			return nil
		},
	}, nil
}

// checkURL parses a server's address. It permits http only for private and loopback addresses and
// names that may have such; the client checks a name's addresses.
func checkURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it must begin with https://, or with http:// for a private or loopback address")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.User != nil:
		return nil, errors.New("it must not hold a user or a password; use bearer_token_env or headers")
	case u.Fragment != "":
		return nil, errors.New("it must not have a fragment (#)")
	}
	if u.Scheme == "http" && !reach.IsLocal(u.Hostname()) {
		return nil, fmt.Errorf("http: is only for private and loopback addresses, which %s is not; write https", u.Hostname())
	}
	return u, nil
}

// directTransport is a transport to the host. What http would carry in the clear goes by no proxy and to
// near addresses only, whatever a name resolves to.
func directTransport(scheme string) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if scheme == "https" {
		return transport
	}
	transport.Proxy = nil
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if reach.UnusableForService(to.Addr()) != "" {
			return fmt.Errorf("http: is only for private and loopback addresses, which %s is not; write https", to.Addr())
		}
		return nil
	}}
	transport.DialContext = dialer.DialContext
	return transport
}

// originOf is scheme, host and port, as one text.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// oneHost is a transport that adds headers for one origin and refuses others.
type oneHost struct {
	base    *http.Transport
	origin  string
	headers http.Header
}

func (o *oneHost) RoundTrip(request *http.Request) (*http.Response, error) {
	if origin := originOf(request.URL); origin != o.origin {
		return nil, fmt.Errorf("%s may not be reached, only %s", origin, o.origin)
	}
	request = request.Clone(request.Context())
	for name, values := range o.headers {
		if request.Header.Get(name) == "" || name == "Authorization" { // what the protocol sets stays
			request.Header[name] = values
		}
	}
	return o.base.RoundTrip(request)
}

// CloseIdleConnections implements http.Client.CloseIdleConnections.
func (o *oneHost) CloseIdleConnections() { o.base.CloseIdleConnections() }

// boundedTransport is a session's transport. It ends with ctx and bounds answers.
type boundedTransport struct {
	base   http.RoundTripper // that of a client of NewClient
	ctx    context.Context
	end    context.CancelFunc
	onLost func(error) bool // reports whether a failure ends the session
}

// boundedClient returns a client with another's redirects, whose transport ends with the session.
func boundedClient(client *http.Client, lost func(error) bool) (*http.Client, *boundedTransport) {
	b := &boundedTransport{base: client.Transport, onLost: lost}
	b.ctx, b.end = context.WithCancel(context.Background())
	held := *client
	held.Transport = b
	return &held, b
}

// RoundTrip sends a request, which ends with the session at the latest. It bounds the answer and rewrites it for the library. A
// server that is out of reach ends the session.
func (b *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if isEventStream(request) {
		return b.serveEventStream(request), nil
	}
	ctx, cancel := context.WithCancel(request.Context())
	release := context.AfterFunc(b.ctx, cancel)
	done := func() {
		release()
		cancel()
	}
	sent := request.WithContext(ctx)
	if err := rewriteRequest(sent); err != nil {
		done()
		return nil, err
	}
	response, err := b.base.RoundTrip(sent)
	if err != nil {
		if request.Context().Err() == nil {
			b.fail(fmt.Errorf("it can't be reached: %w", err))
		}
		done()
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		b.fail(fmt.Errorf("it is not there: %s", response.Status))
	}
	limit := int64(maxLineBytes)
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		limit = maxUnrequestedBytes
	}
	response.Body = &boundedBody{body: response.Body, remaining: limit, limit: limit, release: done, fail: b.fail}
	rewriteResponse(response)
	return response, nil
}

// fail ends the session, unless it is ending anyway.
func (b *boundedTransport) fail(err error) {
	if b.ctx.Err() == nil && b.onLost(err) {
		b.end()
	}
}
