package github

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

const (
	// maxReply bounds what is read of one reply. A page of 100 comments of the
	// greatest length GitHub allows (65,536 characters) stays below it.
	maxReply = 32 << 20

	maxRedirects = 5
)

// tokenTransport adds the token to requests where it may go, and takes any other
// Authorization header off, with the word of where a redirect came from. It works
// below redirects, so that net/http has no header it could carry to another host.
type tokenTransport struct {
	base  http.RoundTripper
	token string
	may   func(*url.URL) bool // the token go there
}

func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	req.Header.Del("Referer")
	if t.token != "" && t.may(req.URL) {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.base.RoundTrip(req)
}

func isOfOrigin(of *url.URL) func(*url.URL) bool {
	return func(u *url.URL) bool { return origin.Of(u) == origin.Of(of) }
}

type redirectError struct{ why string }

func (e *redirectError) Error() string { return "redirect not followed: " + e.why }

// checkRedirect follows a redirect within one host only: what another host
// says is not what the configured one says. A redirect that would turn a write
// into a read is handed to the caller as the reply it is.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects {
		return &redirectError{"more than five in a row"}
	}
	if req.Method != first.Method {
		return http.ErrUseLastResponse
	}
	if origin.Of(first.URL) != origin.Of(req.URL) {
		return &redirectError{fmt.Sprintf("%s points to another host, %s://%s", first.URL.Host, req.URL.Scheme, req.URL.Host)}
	}
	return nil
}

// boundedTransport makes reading a reply beyond limit fail.
type boundedTransport struct {
	base  http.RoundTripper
	limit int64
}

func (t *boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, t.limit)
	return resp, nil
}
