package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

const (
	// maxReply is the largest reply in bytes. It is larger than a page of 100 comments of GitHub's
	// maximum length (65,536 characters).
	maxReply = 32 << 20

	maxRedirects = 5
)

// tokenTransport adds the token to requests for permitted addresses. It removes any other
// Authorization header, and Referer. It handles each request of a redirect, so net/http has no
// header to copy to another host.
type tokenTransport struct {
	base  http.RoundTripper
	token string
	may   func(*url.URL) bool // whether the token may be sent there
}

// RoundTrip sends a request, with the token if its address may get it.
func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	req.Header.Del("Referer")
	if t.token != "" && t.may(req.URL) {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.base.RoundTrip(req)
}

// isOfOrigin returns a function that reports whether a URL has the same origin as of.
func isOfOrigin(api *url.URL) func(*url.URL) bool {
	return func(u *url.URL) bool { return origin.Of(u) == origin.Of(api) }
}

type redirectError struct{ why string }

func (e *redirectError) Error() string { return "redirect not followed: " + e.why }

// checkRedirect follows redirects only within the API's host, because no other host was configured.
// If a redirect would turn a write into a read, it returns the redirect itself as the reply.
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

// replyTransport fails a reply above limit bytes. It records the scopes of the token; only classic
// tokens have scopes.
type replyTransport struct {
	base   http.RoundTripper
	limit  int64
	scopes *atomic.Pointer[string]
}

// RoundTrip sends a request, limits the size of the reply, and records the scopes of the token.
func (t *replyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, t.limit)
	if values := resp.Header.Values("X-OAuth-Scopes"); len(values) > 0 && resp.StatusCode < http.StatusBadRequest {
		scopes := strings.Join(values, ",")
		t.scopes.Store(&scopes)
	}
	return resp, nil
}

// actionsBot is the account that GITHUB_TOKEN of GitHub Actions acts as.
const actionsBot = "github-actions[bot]"

// tokenKinds maps prefixes of tokens to their kinds (docs.github.com, about authentication to
// GitHub).
var tokenKinds = []struct{ prefix, kind string }{
	{"github_pat_", "fine-grained personal access token"},
	{"ghp_", "classic personal access token"},
	{"ghs_", "installation token (of GitHub Actions or an App)"},
	{"ghu_", "user token of an App"},
	{"gho_", "OAuth token"},
}

// TokenKind returns the kind of a token for messages, "none" for "".
func TokenKind(token string) string {
	if token == "" {
		return "none"
	}
	for _, k := range tokenKinds {
		if strings.HasPrefix(token, k.prefix) {
			return k.kind
		}
	}
	return "of a kind that is not known"
}

func (c *Client) LacksScope(scope string) bool {
	scopes := c.scopes.Load()
	if scopes == nil {
		return false
	}
	return !slices.ContainsFunc(strings.Split(*scopes, ","), func(each string) bool { return strings.TrimSpace(each) == scope })
}

func (c *Client) Viewer(ctx context.Context) (forge.User, error) {
	found, _, err := c.rest.Users.Get(ctx, "")
	if err != nil {
		return forge.User{}, c.failed(ctx, call{doing: "ask whose the token is", permission: "a token of a person"}, err)
	}
	return userFrom(found), nil
}

func (c *Client) HasWorkflowToken(ctx context.Context) (bool, error) {
	login, err := c.ActingAs(ctx)
	return login == actionsBot, err
}

func (c *Client) ActingAs(ctx context.Context) (string, error) {
	what := call{doing: "ask whose token it is", permission: "metadata: read"}
	var data struct{ Viewer struct{ Login string } }
	err := c.query(ctx, what, `query { viewer { login } }`, map[string]string{}, &data)
	return data.Viewer.Login, err
}
