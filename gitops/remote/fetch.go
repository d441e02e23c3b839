package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// FetchOptions describes what to fetch.
type FetchOptions struct {
	Commit string // hex id
	Have   string // a commit that the store has with all files; "" for none
	// WithoutHistory fetches the commit with all files but no history. Use it for a commit that
	// does not descend from Have.
	WithoutHistory bool
}

// Fetch adds a commit to a store, with the files and history that Have does not contain. git
// verifies the hashes. It returns the same error types as Push.
func Fetch(ctx context.Context, r Remote, into Store, o FetchOptions) (err error) {
	if !plumbing.IsHash(o.Commit) {
		return fmt.Errorf("fetch: %q is not the hex id of a commit", o.Commit)
	}
	options := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"}
	if o.WithoutHistory {
		options = append(options, "--depth=1")
	} else if o.Have != "" {
		removeReference, failure := into.addReference(o.Have)
		defer func() { err = errors.Join(err, removeReference()) }()
		if failure != nil {
			return fmt.Errorf("fetch: %w", failure)
		}
	}
	if _, _, err := r.git(ctx, into, options, o.Commit); err != nil {
		return r.describeError(ctx, "fetch from", err)
	}
	return nil
}

// addReference adds a reference to a commit of the store. git then tells the remote which objects
// it has, and checks only the others.
func (s Store) addReference(commit string) (removeReference func() error, err error) {
	name := filepath.Join(s.Dir, "refs", "heads", "here")
	remove := func() error {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return remove, os.WriteFile(name, []byte(commit+"\n"), 0o600)
}
