package trees

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// OnRemote reports whether a commit was on a branch of origin at the last fetch. It ignores local
// branches. It also ignores refs that the configuration does not fetch from branches, such as pull
// requests: strangers can push to those.
func (s *Store) OnRemote(ctx context.Context, branch, sha string) (bool, error) {
	id, err := repository.ParseID(sha)
	if err != nil || branch == "" {
		return false, nil
	}
	name := "refs/remotes/origin/" + branch
	if !fetchesOnlyBranches(s.repo.Settings.Fetch, name) {
		return false, nil
	}
	tip, err := s.repo.ReadRef(name)
	if errors.Is(err, repository.ErrNoRef) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.objects.IsAncestor(ctx, id, tip)
}

// fetchesOnlyBranches reports whether every refspec that can write a ref fetches it from a branch, such as
// "+refs/heads/*:refs/remotes/origin/*".
func fetchesOnlyBranches(specs []string, name string) bool {
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
