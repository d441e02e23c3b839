package worktree

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/copytree"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Keep copies the given paths of the work tree, and the files of submodules that are checked out,
// to dir. From a layer's .git it also copies what commands may have changed: the configuration, the
// hooks, the repositories of submodules, and the .git files that point to those. It omits sockets,
// devices, pipes, unreadable and hidden files, and folders deeper than pathname.Deepest.
func (w *Worktree) Keep(ctx context.Context, paths []string, ix *index.File, dir string) error {
	if err := w.keep(ctx, paths, ix, dir); err != nil {
		return fmt.Errorf("keep untracked files: %w", err)
	}
	return nil
}

// modules is the folder with the repositories of submodules, inside the work tree.
const modules = ".git/modules"

// keep copies the untracked paths, then the files of submodules. From a layer it also copies what commands
// may have changed in its git folder: the configuration, hooks and submodule repositories.
func (w *Worktree) keep(ctx context.Context, paths []string, ix *index.File, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	c := copytree.Copier{To: to, Omit: w.Hides}
	for _, name := range paths {
		if err := c.Path(ctx, w.dir, name); err != nil {
			return err
		}
	}
	c.Omit = func(name string) bool {
		isUselessGit := path.Base(name) == ".git" && !w.leadsToModule(name)
		return isUselessGit || w.Hides(name)
	}
	for i := range ix.Len() {
		if ix.Mode(i) != index.Gitlink {
			continue
		}
		if err := c.Path(ctx, w.dir, string(ix.Path(i))); err != nil {
			return err
		}
	}
	if !w.InLayer() {
		return nil
	}
	for _, name := range []string{".git/config", ".git/hooks", modules} {
		if err := copytree.Folder(ctx, to, w.dir, name); err != nil {
			return err
		}
	}
	return nil
}

// leadsToModule reports whether a submodule's .git is a file that points to a repository in the git
// folder of a layer.
func (w *Worktree) leadsToModule(link string) bool {
	if !w.InLayer() {
		return false
	}
	content, err := regularfile.ReadIn(w.dir, link)
	return err == nil && strings.HasPrefix(string(content), "gitdir: "+strings.Repeat("../", strings.Count(link, "/"))+modules+"/")
}
