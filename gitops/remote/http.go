package remote

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

const (
	connectTimeout = 15 * time.Second
	// headerTimeout is for the first byte of a reply: a server may check a
	// whole push before it answers.
	headerTimeout = 10 * time.Minute

	// maxAdvertised bounds the list of refs, some 60 bytes for each.
	maxAdvertised = 128 << 20
	maxErrorReply = 64 << 10
	maxRedirects  = 5
)

// httpTransport carries the requests of one session. It adds the credentials
// itself, by the host of each request, so that a redirect carries none away.
type httpTransport struct {
	base           *http.Transport
	origin         string
	user, password string

	posted   io.ReadCloser // the reply to the last POST, which go-git leaves open
	resolved *url.URL      // where the list of refs came from
}

func newHTTPTransport(r Remote, endpoint *transport.Endpoint) (*httpTransport, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", r.Name())
	}
	user, password := r.credentials(endpoint)
	endpoint.User, endpoint.Password = "", ""
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	return &httpTransport{
		base: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			MaxIdleConns: 2, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: headerTimeout,
		},
		origin: origin.Of(u), user: user, password: password,
	}, nil
}

func (t *httpTransport) git() transport.Transport {
	return githttp.NewClient(&http.Client{Transport: t, CheckRedirect: checkRedirect})
}

func (t *httpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if t.password != "" && origin.Of(req.URL) == t.origin {
		req.SetBasicAuth(t.user, t.password)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode >= http.StatusMultipleChoices:
		resp.Body = bounded(resp.Body, maxErrorReply)
	case req.Method == http.MethodPost:
		t.posted = resp.Body
	default:
		t.resolved = req.URL
		resp.Body = bounded(resp.Body, maxAdvertised)
	}
	return resp, nil
}

// finish lets the server end what it does after its report (hooks that run
// after the push), and closes the connections.
func (t *httpTransport) finish() {
	if t.posted != nil {
		_, _ = io.CopyN(io.Discard, t.posted, maxErrorReply)
		_ = t.posted.Close()
	}
	t.base.CloseIdleConnections()
}

// cloneURL is the URL after the redirects of the list of refs.
func (t *httpTransport) cloneURL() string {
	u := *t.resolved
	u.Path = strings.TrimSuffix(u.Path, "/info/refs")
	u.RawPath, u.RawQuery = "", ""
	return u.String()
}

type redirectError struct{ why string }

func (e *redirectError) Error() string { return "redirect not followed: " + e.why }

// checkRedirect stays on one host; it may go from http to https there.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects {
		return &redirectError{"more than five in a row"}
	}
	upgraded := first.Scheme == "http" && req.URL.Scheme == "https" && first.Hostname() == req.URL.Hostname()
	if upgraded || origin.Of(first) == origin.Of(req.URL) {
		return nil
	}
	return &redirectError{fmt.Sprintf("%s points to another host, %s; use the URL of the repository there", first.Host, req.URL.Host)}
}

func bounded(body io.ReadCloser, limit int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, limit), body}
}

// httpUpload and httpReceive are go-git's sessions, closed with their transport.
type httpUpload struct {
	transport.UploadPackSession
	http *httpTransport
}

func (s httpUpload) Close() error {
	s.http.finish()
	return s.UploadPackSession.Close()
}

type httpReceive struct {
	transport.ReceivePackSession
	http *httpTransport
}

func (s httpReceive) Close() error {
	s.http.finish()
	return s.ReceivePackSession.Close()
}

func httpUploadSession(r Remote, endpoint *transport.Endpoint) (transport.UploadPackSession, error) {
	t, err := newHTTPTransport(r, endpoint)
	if err != nil {
		return nil, err
	}
	session, err := t.git().NewUploadPackSession(endpoint, nil)
	return httpUpload{session, t}, err
}

func httpReceiveSession(r Remote, endpoint *transport.Endpoint) (transport.ReceivePackSession, error) {
	t, err := newHTTPTransport(r, endpoint)
	if err != nil {
		return nil, err
	}
	session, err := t.git().NewReceivePackSession(endpoint, nil)
	return httpReceive{session, t}, err
}
