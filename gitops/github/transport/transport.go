// Package transport carries requests to GitHub: it adds the token for permitted addresses, bounds
// replies and redirects, retries temporary failures, and stays within GitHub's rate limits. It knows
// no call of the API.
package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

// New returns a transport that uses the proxy of the environment.
func New() *http.Transport { return origin.NewTransport(time.Minute) }

// Authorizer adds the token to requests for permitted addresses. It removes any other
// Authorization header, and Referer. It handles each request of a redirect, so net/http has no
// header to copy to another host.
type Authorizer struct {
	Base      http.RoundTripper
	Token     string
	MaySendTo func(*url.URL) bool // whether the token may be sent there
}

// RoundTrip sends a request, with the token if its address may get it.
func (a *Authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	req.Header.Del("Referer")
	if a.Token != "" && a.MaySendTo(req.URL) {
		req.Header.Set("Authorization", "Bearer "+a.Token)
	}
	return a.Base.RoundTrip(req)
}

// SameOrigin returns a function that reports whether a URL has the same origin as the API.
func SameOrigin(api *url.URL) func(*url.URL) bool {
	return func(u *url.URL) bool { return origin.Of(u) == origin.Of(api) }
}

// FollowWithinHost is the CheckRedirect of clients of the API. It follows redirects only within the API's host,
// because no other host was configured. If a redirect would turn a write into a read, it returns the redirect
// itself as the reply.
func FollowWithinHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if err := origin.CheckCount(via); err != nil {
		return err
	}
	if req.Method != first.Method {
		return http.ErrUseLastResponse
	}
	if origin.Of(first.URL) != origin.Of(req.URL) {
		return &origin.RedirectError{Why: fmt.Sprintf("%s points to another host, %s://%s", first.URL.Host, req.URL.Scheme, req.URL.Host)}
	}
	return nil
}

// BoundedReplies fails a reply above Limit bytes. It records the scopes of the token; only classic
// tokens have scopes.
type BoundedReplies struct {
	Base   http.RoundTripper
	Limit  int64 // in bytes
	Scopes *atomic.Pointer[string]
}

// RoundTrip sends a request, limits the size of the reply, and records the scopes of the token.
func (b *BoundedReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.Base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = replyBody{http.MaxBytesReader(nil, resp.Body, b.Limit)}
	if values := resp.Header.Values("X-OAuth-Scopes"); len(values) > 0 && resp.StatusCode < http.StatusBadRequest {
		scopes := strings.Join(values, ",")
		b.Scopes.Store(&scopes)
	}
	return resp, nil
}

// BrokenReplyError reports that the connection broke, or timed out, before the end of a reply.
type BrokenReplyError struct{ Err error }

func (e *BrokenReplyError) Error() string { return "the reply ended early: " + e.Err.Error() }

func (e *BrokenReplyError) Unwrap() error { return e.Err }

// replyBody returns a *BrokenReplyError for an error of the connection. Decoders cannot tell it from a mistake of the
// server.
type replyBody struct{ io.ReadCloser }

func (b replyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !errors.As(err, new(*http.MaxBytesError)) {
		err = &BrokenReplyError{err}
	}
	return n, err
}

// IsCertificateError reports whether a request failed because of the server's certificate.
func IsCertificateError(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError))
}
