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

// Remote is a job's MCP server at a URL.
type Remote struct {
	URL     string
	Headers map[string]string
	Bearer  string // token for Authorization; "" for none
}

// maxRedirects is the maximum number of redirects of a request. All must stay on the server's origin.
const maxRedirects = 5

// NewClient returns a client for a remote server. It adds the server's headers and token to each request, and
// refuses requests to other origins. The error is for people.
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
		Transport: &originTransport{base: directTransport(address.Scheme), origin: originOf(address), headers: headers},
		CheckRedirect: func(request *http.Request, earlier []*http.Request) error {
			if originOf(request.URL) != originOf(address) {
				return fmt.Errorf("it redirects to %s, and only %s may be reached; write that address in url if it is right", request.URL.Host, address.Host)
			}
			if len(earlier) > maxRedirects {
				return errors.New("it redirects without end")
			}
			return nil
		},
	}, nil
}

// checkURL parses a server's URL, and returns an error if it is not allowed. It permits http for private and
// loopback addresses, and for names that may have such addresses. The client checks a name's addresses later.
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

// directTransport returns the transport for the scheme https or http. Since http does not encrypt, its
// transport uses no proxy and dials only private and loopback addresses.
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

// originOf returns the scheme, host and port of a URL, such as https://example.com:443.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// originTransport is a transport that adds headers to requests to one origin, and refuses all others.
type originTransport struct {
	base    *http.Transport
	origin  string
	headers http.Header
}

// RoundTrip sends a request to the origin, with the headers. It returns an error for any other origin.
func (o *originTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if origin := originOf(request.URL); origin != o.origin {
		return nil, fmt.Errorf("%s may not be reached, only %s", origin, o.origin)
	}
	request = request.Clone(request.Context())
	for name, values := range o.headers {
		if request.Header.Get(name) == "" || name == "Authorization" { // keep headers that the protocol library has set
			request.Header[name] = values
		}
	}
	return o.base.RoundTrip(request)
}

// CloseIdleConnections implements http.Client.CloseIdleConnections.
func (o *originTransport) CloseIdleConnections() { o.base.CloseIdleConnections() }

// boundedTransport is a session's transport. Its requests end with the session, and its answers are bounded.
type boundedTransport struct {
	base   http.RoundTripper // the transport of a client of NewClient
	ctx    context.Context   // ends with the session
	end    context.CancelFunc
	onLost func(error) (endsSession bool) // called when the server is unreachable or sends too much
}

// boundedClient returns a copy of a client with a boundedTransport, and that transport. onLost is its field.
func boundedClient(client *http.Client, onLost func(error) bool) (*http.Client, *boundedTransport) {
	b := &boundedTransport{base: client.Transport, onLost: onLost}
	b.ctx, b.end = context.WithCancel(context.Background())
	bounded := *client
	bounded.Transport = b
	return &bounded, b
}

// RoundTrip sends a request, which also ends with the session. It bounds the answer and rewrites it for the
// library. An unreachable server ends the session.
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
	response.Body = &boundedBody{http.MaxBytesReader(nil, response.Body, limit), done, b.fail}
	rewriteResponse(response)
	return response, nil
}

// fail passes err to onLost, and ends the session's requests if onLost returns true.
func (b *boundedTransport) fail(err error) {
	if b.ctx.Err() == nil && b.onLost(err) {
		b.end()
	}
}
