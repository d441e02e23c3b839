package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

const (
	// headerTimeout is the longest wait for the first byte of a reply.
	headerTimeout = 10 * time.Minute

	maxErrorReply = 64 << 10
)

// httpTransport sends requests of agent-ci itself. It adds credentials only if a request goes to
// the remote's origin, so a redirect cannot send them elsewhere.
type httpTransport struct {
	base *http.Transport
	to   target
}

// newHTTPTransport returns a transport that may send the credentials of a remote to it.
func newHTTPTransport(to target) *httpTransport {
	return &httpTransport{base: origin.NewTransport(headerTimeout), to: to}
}

// RoundTrip sends a request. It limits the body of an error reply.
func (t *httpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if t.to.password != "" && origin.Of(req.URL) == t.to.origin {
		req.SetBasicAuth(t.to.user, t.to.password)
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		resp.Body = limitBody(resp.Body, maxErrorReply)
	}
	return resp, err
}

// redirectedAddress returns the address to which the server redirects requests for the repository.
func (r Remote) redirectedAddress(ctx context.Context) (string, error) {
	t, err := r.target()
	if err != nil {
		return "", err
	}
	const list = "/info/refs"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.address+list+"?service=git-upload-pack", nil)
	if err != nil {
		return "", err
	}
	carrier := newHTTPTransport(t)
	defer carrier.base.CloseIdleConnections()
	response, err := (&http.Client{Transport: carrier, CheckRedirect: checkRedirect}).Do(request)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	at := *response.Request.URL
	path, ok := strings.CutSuffix(at.Path, list)
	if !ok {
		return "", &origin.RedirectError{Why: fmt.Sprintf("%s leads to a page that is no git repository", at.Host)}
	}
	at.Path, at.RawPath, at.RawQuery = path, "", ""
	return at.String(), nil
}

// checkRedirect accepts a redirect within one origin, or from http to https on the same host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if err := origin.CheckCount(via); err != nil {
		return err
	}
	upgraded := first.Scheme == "http" && req.URL.Scheme == "https" && first.Hostname() == req.URL.Hostname()
	if upgraded || origin.Of(first) == origin.Of(req.URL) {
		return nil
	}
	return &origin.RedirectError{Why: fmt.Sprintf("%s points to another host, %s; use the URL of the repository there", first.Host, req.URL.Host)}
}

// limitBody returns body, cut after limit bytes.
func limitBody(body io.ReadCloser, limit int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, limit), body}
}
