package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// FetchOptions says which commit to fetch, and what is here already.
type FetchOptions struct {
	Commit string // hex id
	Have   string // a commit that is here, with all files; "" for none
	// Alone asks for the commit without its history, and with all of its
	// files. It is for a commit that does not have Have among its ancestors.
	Alone bool
}

// Fetch puts one commit into a store, with its files and its history, as far as they are not those of the
// commit that is here. git hashes what comes. The errors are those of Push.
func Fetch(ctx context.Context, r Remote, into Store, o FetchOptions) (err error) {
	if !plumbing.IsHash(o.Commit) {
		return fmt.Errorf("fetch: %q is not the hex id of a commit", o.Commit)
	}
	options := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"}
	if o.Alone {
		options = append(options, "--depth=1")
	} else if o.Have != "" {
		forget, err := into.remember(o.Have)
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

// remember gives the store a reference to a commit, by which git tells the other side what is here, and
// ends its look at what came.
func (s Store) remember(commit string) (forget func() error, err error) {
	name := filepath.Join(s.Dir, "refs", "heads", "here")
	return func() error { return os.Remove(name) }, os.WriteFile(name, []byte(commit+"\n"), 0o600)
}
