package github

import "context"

// Viewer is the account that the token belongs to. The token of an App's
// installation, as Actions gives one, belongs to nobody: the error has the kind
// Forbidden.
func (c *Client) Viewer(ctx context.Context) (User, error) {
	found, _, err := c.rest.Users.Get(ctx, "")
	if err != nil {
		return User{}, c.failed(ctx, call{doing: "ask whose the token is", permission: "a token of a person"}, err)
	}
	return userFrom(found), nil
}
