package github

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Viewer is the account that the token belongs to. The token of an App's
// installation, as Actions gives one, belongs to nobody: the error has the kind
// Forbidden.
func (c *Client) Viewer(ctx context.Context) (forge.User, error) {
	found, _, err := c.rest.Users.Get(ctx, "")
	if err != nil {
		return forge.User{}, c.failed(ctx, call{doing: "ask whose the token is", permission: "a token of a person"}, err)
	}
	return userFrom(found), nil
}
