package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/copytree"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// MaterialiseOptions describes a fresh tree.
type MaterialiseOptions struct {
	Dir       string // created; an existing one must be empty
	Untracked string // a folder filled by CopyUntracked; "" or a missing folder means no untracked files
	TreeForCommands
}

// Materialise checks out a tree at o.Dir, with a .git of its own. It then adds the untracked files
// and the files of submodules.
func (c *Checkout) Materialise(ctx context.Context, o MaterialiseOptions) error {
	if err := c.materialise(ctx, o); err != nil {
		return fmt.Errorf("make a fresh tree: %w", err)
	}
	return nil
}

// materialise is Materialise without the context of its errors.
func (c *Checkout) materialise(ctx context.Context, o MaterialiseOptions) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	gitDir := filepath.Join(dir, ".git")
	if err := c.newGitDir(ctx, gitDir, o.TreeForCommands); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := c.work.Fill(ctx, root, o.Tree.Hash()); err != nil {
		return err
	}
	if o.Untracked == "" {
		return nil
	}
	if err := copySettings(ctx, filepath.Join(o.Untracked, ".git"), gitDir); err != nil {
		return err
	}
	if err := copytree.Into(ctx, root, o.Untracked); err != nil {
		return err
	}
	return c.linkModules(root)
}

// moduleLink returns the content of a submodule's .git file: the relative path to its repository in
// the .git of the tree.
func moduleLink(m repository.Module) string {
	return "gitdir: " + strings.Repeat("../", strings.Count(m.Path, "/")+1) + ".git/" + m.Name + "\n"
}

// linkModules writes the missing .git files of submodules, so that they point to their repositories
// in the git folder of a fresh tree. It skips submodules that are not in the tree.
func (c *Checkout) linkModules(root *os.Root) error {
	for _, m := range c.repo.Modules() {
		link := path.Join(m.Path, ".git")
		if info, err := root.Lstat(m.Path); err != nil || !info.IsDir() {
			continue // the tree has no folder at this path
		}
		f, err := root.OpenFile(link, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(moduleLink(m))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
