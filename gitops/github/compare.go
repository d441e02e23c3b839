package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Compare says how commit stands to base.
func (c *Client) Compare(ctx context.Context, owner, name, base, commit string) (forge.Relation, error) {
	what := call{doing: fmt.Sprintf("compare %.12s with %.12s in %s/%s", commit, base, owner, name), permission: "contents: read"}
	for _, id := range []string{base, commit} {
		if err := checkObject(what, owner, name, id); err != nil {
			return "", err
		}
	}
	// The first page alone has the files that differ.
	found, _, err := c.rest.Repositories.CompareCommits(ctx, owner, name, base, commit, &gh.ListOptions{Page: 2, PerPage: 1})
	if err != nil {
		return "", c.failed(ctx, what, err)
	}
	return forge.Relation(found.GetStatus()), nil
}
