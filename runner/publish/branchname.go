package publish

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// requireBranchFits verifies that a branch fits among a repository's branches. git stores branches as paths,
// so "a" and "a/b" exclude each other. If branches cannot be listed, the push reports the problem.
func requireBranchFits(ctx context.Context, to remote.Remote, branch string) error {
	branches, err := remote.Branches(ctx, to)
	if err != nil {
		return ctx.Err()
	}
	if other := conflictingBranch(branches, branch); other != "" {
		return outcome.Stopf(outcome.InvalidInput, "branch_name",
			"%s has the branch %s, and %s cannot be beside it: give another name as pull_request.branch, or delete %s there.", to.Name(), other, branch, other)
	}
	return nil
}

// conflictingBranch returns the first branch above or below the given one, or "".
func conflictingBranch(branches map[string]string, branch string) string {
	for at := path.Dir(branch); at != "."; at = path.Dir(at) {
		if _, there := branches[at]; there {
			return at
		}
	}
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		if strings.HasPrefix(name, branch+"/") {
			return name
		}
	}
	return ""
}
