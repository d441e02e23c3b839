package gitops

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// OnRemote says whether a commit is part of a branch of origin, as this checkout last fetched it. A
// local branch does not count, nor what the configuration fetches into the place of origin's branches
// from elsewhere, such as the heads of pull requests: a stranger may have pushed it.
func (c *Checkout) OnRemote(ctx context.Context, branch, sha string) (bool, error) {
	id, err := repository.ParseID(sha)
	if err != nil || branch == "" {
		return false, nil
	}
	name := "refs/remotes/origin/" + branch
	if !fromBranches(c.repo.Settings.Fetch, name) {
		return false, nil
	}
	tip, err := c.repo.ReadRef(name)
	if errors.Is(err, repository.ErrNoRef) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return c.objects.IsAncestor(ctx, id, tip)
}

// fromBranches says whether each of the refspecs that can write a ref fetches it from a branch.
func fromBranches(specs []string, name string) bool {
	for _, spec := range specs {
		from, to, _ := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
		before, after, pattern := strings.Cut(to, "*")
		writes := to == name || pattern && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
		if writes && !strings.HasPrefix(from, "refs/heads/") {
			return false
		}
	}
	return true
}
