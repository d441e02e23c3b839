package gitops

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// IDAt returns the id of a tree's entry at a path, or "".
func (c *Checkout) IDAt(tree Tree, path string) (string, error) {
	e, err := c.objects.Find(tree.hash(), path)
	if err != nil {
		return "", fmt.Errorf("find %q in tree %s: %w", path, tree, err)
	}
	if e.Mode == 0 {
		return "", nil
	}
	return e.ID.String(), nil
}

// WithFile returns a change set with new content for a file. It keeps the executable bit. The work
// tree stays, and no longer matches the result.
func (c *Checkout) WithFile(ctx context.Context, cs *ChangeSet, path string, content []byte) (*ChangeSet, error) {
	if !objects.ValidPath(path) {
		return nil, fmt.Errorf("put %q into a change: it is no path of a checkout", path)
	}
	id, err := c.objects.WriteBytes(plumbing.BlobObject, content)
	if err != nil {
		return nil, fmt.Errorf("put %q into a change: %w", path, err)
	}
	was, err := c.objects.Find(cs.Tree.hash(), path)
	if err != nil {
		return nil, fmt.Errorf("put %q into a change: %w", path, err)
	}
	edit := objects.Edit{Path: path, Mode: index.Regular, ID: id}
	if was.Mode == index.Executable {
		edit.Mode = was.Mode
	}
	tree, err := c.objects.Apply(cs.Tree.hash(), []objects.Edit{edit})
	if err != nil {
		return nil, fmt.Errorf("put %q into a change: %w", path, err)
	}
	return c.otherTree(ctx, cs, Tree(tree.String()))
}

// WithExactBytes is WithFile for a file whose bytes are already in the work tree. Attributes may convert
// them for git; the work tree matches the result as before.
func (c *Checkout) WithExactBytes(ctx context.Context, cs *ChangeSet, path string, content []byte) (*ChangeSet, error) {
	other, err := c.WithFile(ctx, cs, path, content)
	if err != nil {
		return nil, err
	}
	other.stats = cs.stats
	return other, nil
}

// Without returns a change set without changes at a path.
func (c *Checkout) Without(ctx context.Context, cs *ChangeSet, path string) (*ChangeSet, error) {
	tree, err := c.Swap(cs.Tree, cs.Base.Tree, []string{path})
	if err != nil {
		return nil, err
	}
	return c.otherTree(ctx, cs, tree)
}

func (c *Checkout) otherTree(ctx context.Context, cs *ChangeSet, tree Tree) (*ChangeSet, error) {
	other, err := c.changeSet(ctx, cs.Base, tree)
	if err != nil {
		return nil, err
	}
	other.keepProblems(cs.Problems)
	return other, nil
}
