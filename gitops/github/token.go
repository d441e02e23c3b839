package github

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

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

// LacksScope reports whether the token's scopes are known and do not include scope.
func (c *Client) LacksScope(scope string) bool {
	scopes := c.scopes.Load()
	if scopes == nil {
		return false
	}
	return !slices.ContainsFunc(strings.Split(*scopes, ","), func(each string) bool { return strings.TrimSpace(each) == scope })
}

// Viewer returns the account of the token.
func (c *Client) Viewer(ctx context.Context) (forge.User, error) {
	found, _, err := c.rest.Users.Get(ctx, "")
	if err != nil {
		return forge.User{}, c.callError(ctx, apiCall{action: "ask whose the token is", permission: "a token of a person"}, err)
	}
	return userFrom(found), nil
}

// HasWorkflowToken reports whether the token is GITHUB_TOKEN of a workflow.
func (c *Client) HasWorkflowToken(ctx context.Context) (bool, error) {
	login, err := c.ActingAs(ctx)
	return login == actionsBot, err
}

// ActingAs returns the login of the token's account, app or workflow.
func (c *Client) ActingAs(ctx context.Context) (string, error) {
	call := apiCall{action: "ask whose token it is", permission: "metadata: read"}
	var data struct{ Viewer struct{ Login string } }
	err := c.queryGraphQL(ctx, call, `query { viewer { login } }`, map[string]string{}, &data)
	return data.Viewer.Login, err
}
