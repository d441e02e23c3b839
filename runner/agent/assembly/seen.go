package assembly

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
)

// treeView gives tools outside the sandbox access to the work tree as commands in the sandbox see it. It opens folders
// at their first use, because an overlay exists only with its sandbox.
type treeView struct {
	rootFolder, workDir tools.Folder
	view                func() (*grants.View, error)

	mu     sync.Mutex
	opened []*os.Root
}

// newTreeView returns the view of the agent's tree in box. box may be nil if nothing is opened.
func (a *Agent) newTreeView(box *sandbox.Sandbox) *treeView {
	treePath := sync.OnceValues(func() (string, error) { return a.Sandboxes.TreePath(box, a.Place()) })
	view := new(treeView)
	view.view = a.Sandboxes.View(a.Place(), treePath)
	view.rootFolder = view.folder(a.Sandboxes.SandboxPath(a.Place()), func() (*os.Root, error) { return a.openIn(treePath, ".") })
	view.workDir = view.folder(a.workDir(), func() (*os.Root, error) { return a.openIn(treePath, a.Job.Repository.Path) })
	return view
}

// openIn opens a folder of the agent's tree. path is relative to the tree's root.
func (a *Agent) openIn(treePath func() (string, error), path string) (*os.Root, error) {
	dir, err := treePath()
	if err != nil {
		return nil, fmt.Errorf("open the work tree: %w", err)
	}
	if a.Subagent != nil && a.Subagent.Place != nil {
		root, err := os.OpenRoot(filepath.Join(dir, filepath.FromSlash(path)) + "/") // the slash keeps it from blocking on a named pipe
		if err != nil {
			return nil, fmt.Errorf("open the working directory: %w", err)
		}
		return root, nil
	}
	return a.Workspace.OpenWorkDir(dir, path)
}

// folder returns a folder that is opened by open at its first use, and closed by v.close.
func (v *treeView) folder(path string, open func() (*os.Root, error)) tools.Folder {
	return tools.Folder{Path: path, Root: sync.OnceValues(func() (*os.Root, error) {
		root, err := open()
		if err == nil {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.opened = append(v.opened, root)
		}
		return root, err
	})}
}

// requireWorkDir returns an error if the working directory is missing. While nothing has changed, it looks in the
// checkout itself, so that it need not start a sandbox.
func (a *Agent) requireWorkDir(view *treeView) error {
	if !a.Workspace.Untouched() {
		_, err := view.workDir.Root()
		return err
	}
	root, err := a.Workspace.OpenWorkDir(a.Workspace.Root(), a.Job.Repository.Path)
	if err != nil {
		return err
	}
	return root.Close()
}

// checkout returns which files searches and listings must leave out, because git would not commit them. If git's index
// cannot be read, only the ignore patterns count, since that error ends the run elsewhere.
func (v *treeView) checkout(ctx context.Context, c *gitops.Checkout) files.Checkout {
	return files.Checkout{
		Top: v.rootFolder, Exclude: c.ExcludeRules(), IgnoreCase: c.IgnoresCase(),
		Tracked: sync.OnceValue(func() []string {
			tracked, _ := c.Tracked(ctx)
			return tracked
		}),
	}
}

// close closes the folders that were opened.
func (v *treeView) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, root := range v.opened {
		_ = root.Close()
	}
}
