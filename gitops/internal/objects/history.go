package objects

import (
	"context"
	"errors"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

const mostAncestors = 200_000 // commits looked at in search of an ancestor

// IsAncestor says whether old is now or an ancestor of it, as far as history
// goes here: a shallow clone ends early.
func (s *Store) IsAncestor(ctx context.Context, old, now plumbing.Hash) (bool, error) {
	since := time.Time{}
	if c, err := s.Commit(old); err == nil {
		since = c.Committer.When.Add(-24 * time.Hour) // clocks differ
	}
	seen := map[plumbing.Hash]bool{now: true}
	queue := []plumbing.Hash{now}
	for len(queue) > 0 && len(seen) < mostAncestors {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		id := queue[0]
		queue = queue[1:]
		if id == old {
			return true, nil
		}
		commit, err := s.Commit(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) || err == nil && commit.Committer.When.Before(since) {
			continue
		}
		if err != nil {
			return false, err
		}
		for _, p := range commit.ParentHashes {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return false, nil
}
