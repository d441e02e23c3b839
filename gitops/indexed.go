package gitops

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// Exclude is the ignore rules of the repository's info/exclude, as they were
// when the checkout was opened.
func (c *Checkout) Exclude() rules.Ignore { return c.repo.Exclude() }

// IgnoresCase says whether names that differ in case alone are one to git
// (core.ignoreCase).
func (c *Checkout) IgnoresCase() bool { return c.repo.Settings.IgnoreCase }

// Tracked lists the files in the index, sorted by bytes. Git ignores none of
// them, whatever the ignore rules say.
func (c *Checkout) Tracked(ctx context.Context) ([]string, error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tracked files: %w", err)
	}
	paths := make([]string, ix.Len())
	for i := range paths {
		paths[i] = string(ix.Path(i))
	}
	return slices.Compact(paths), nil
}

// TrackedNamed lists the files in the index whose last part is name, sorted by
// bytes.
func (c *Checkout) TrackedNamed(ctx context.Context, name string) ([]string, error) {
	below := []byte("/" + name)
	return c.indexed(ctx, "list tracked files", func(ix *index.File, i int) bool {
		full := ix.Path(i)
		return bytes.HasSuffix(full, below) || string(full) == name
	})
}

// Submodules lists the paths in the index at which another repository is to be,
// whatever .gitmodules names.
func (c *Checkout) Submodules(ctx context.Context) ([]string, error) {
	return c.indexed(ctx, "list the submodules", func(ix *index.File, i int) bool { return ix.Mode(i) == index.Gitlink })
}

// indexed lists the paths of those entries of the index that are wanted; doing is
// what for.
func (c *Checkout) indexed(ctx context.Context, doing string, wanted func(ix *index.File, i int) bool) ([]string, error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var paths []string
	for i := range ix.Len() {
		if wanted(ix, i) {
			paths = append(paths, string(ix.Path(i)))
		}
	}
	return slices.Compact(paths), nil
}
