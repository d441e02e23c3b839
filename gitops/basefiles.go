package gitops

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// ReadBase returns the content of a file of the base commit of at most limit
// bytes. It returns fs.ErrNotExist for what is not there or is no file, and a
// *TooLargeError.
func (c *Checkout) ReadBase(path string, limit int64) ([]byte, error) {
	e, err := c.objects.Find(c.base.Tree.hash(), path)
	if err != nil {
		return nil, fmt.Errorf("read %q of the base commit: %w", path, err)
	}
	if e.Mode != index.Regular && e.Mode != index.Executable {
		return nil, fmt.Errorf("read %q of the base commit: %w", path, fs.ErrNotExist)
	}
	data, err := c.objects.BlobBytes(e.ID, limit)
	var large *objects.TooLargeError
	switch {
	case errors.As(err, &large):
		large.Path = path
		return nil, large
	case err != nil:
		return nil, fmt.Errorf("read %q of the base commit: %w", path, err)
	}
	return data, nil
}

// BaseFiles are the names of the files that lie in a folder of the base commit
// itself, in git's order; none when there is no such folder. "" is the root.
func (c *Checkout) BaseFiles(folder string) ([]string, error) {
	tree := c.base.Tree.hash()
	if folder != "" {
		e, err := c.objects.Find(tree, folder)
		if err != nil {
			return nil, fmt.Errorf("list %q of the base commit: %w", folder, err)
		}
		if !e.IsTree() {
			return nil, nil
		}
		tree = e.ID
	}
	entries, err := c.objects.Tree(tree)
	if err != nil {
		return nil, fmt.Errorf("list %q of the base commit: %w", folder, err)
	}
	var names []string
	for _, e := range entries {
		if e.Mode == index.Regular || e.Mode == index.Executable {
			names = append(names, e.Name)
		}
	}
	return names, nil
}
