package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// FetchOptions names the commit to fetch and an existing one.
type FetchOptions struct {
	Commit string // hex id
	Have   string // a commit that is here, with all files; "" for none
	// WithoutHistory fetches the commit with all files and without history, for a commit that does not
	// descend from Have.
	WithoutHistory bool
}

// Fetch adds one commit to a store, with files and history beyond the existing commit. git verifies
// the hashes. It returns the same error types as Push.
func Fetch(ctx context.Context, r Remote, into Store, o FetchOptions) (err error) {
	if !plumbing.IsHash(o.Commit) {
		return fmt.Errorf("fetch: %q is not the hex id of a commit", o.Commit)
	}
	options := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"}
	if o.WithoutHistory {
		options = append(options, "--depth=1")
	} else if o.Have != "" {
		forget, err := into.addReference(o.Have)
		defer func() { err = errors.Join(err, forget()) }()
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
	}
	if _, _, err := r.git(ctx, into, options, o.Commit); err != nil {
		return r.failed(ctx, "fetch from", err)
	}
	return nil
}

// addReference adds a reference to a commit, which tells the remote about existing objects and limits
// git's check of received ones.
func (s Store) addReference(commit string) (forget func() error, err error) {
	name := filepath.Join(s.Dir, "refs", "heads", "here")
	return func() error { return os.Remove(name) }, os.WriteFile(name, []byte(commit+"\n"), 0o600)
}
