package github

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// actionsBot is who GITHUB_TOKEN of GitHub Actions acts as.
const actionsBot = "github-actions[bot]"

// tokenKinds are what tokens begin with (docs.github.com, about authentication to
// GitHub).
var tokenKinds = []struct{ prefix, kind string }{
	{"github_pat_", "fine-grained personal access token"},
	{"ghp_", "classic personal access token"},
	{"ghs_", "installation token (of GitHub Actions or an App)"},
	{"ghu_", "user token of an App"},
	{"gho_", "OAuth token"},
}

// TokenKind is the kind of a token for a person; "none" for "".
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

// scopesTransport notes what replies tell of the token: classic tokens have
// scopes, the others have none and say nothing.
type scopesTransport struct {
	base   http.RoundTripper
	scopes *atomic.Pointer[string]
}

func (t *scopesTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if values := resp.Header.Values("X-OAuth-Scopes"); len(values) > 0 && resp.StatusCode < http.StatusBadRequest {
		scopes := strings.Join(values, ",")
		t.scopes.Store(&scopes)
	}
	return resp, nil
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
	err := c.query(ctx, what, graphQLRequest{Query: `query { viewer { login } }`, Variables: map[string]string{}}, &data)
	return data.Viewer.Login, err
}
