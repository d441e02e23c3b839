package worker

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

// treeView gives tools outside the sandbox the work tree as commands inside it see it. It opens folders at their first
// use, because an overlay exists only with its sandbox.
type treeView struct {
	top, dir tools.Folder
	view     func() (*grants.View, error)

	mu     sync.Mutex
	opened []*os.Root
}

func (a *Agent) newTreeView(box *sandbox.Sandbox) *treeView {
	tree := sync.OnceValues(func() (string, error) { return a.Sandboxes.TreePath(box, a.Place()) })
	s := new(treeView)
	s.view = a.Sandboxes.View(a.Place(), tree)
	s.top = s.folder(a.Sandboxes.SandboxPath(a.Place()), func() (*os.Root, error) { return a.openIn(tree, ".") })
	s.dir = s.folder(a.workDir(), func() (*os.Root, error) { return a.openIn(tree, a.Job.Repository.Path) })
	return s
}

func (a *Agent) openIn(tree func() (string, error), path string) (*os.Root, error) {
	at, err := tree()
	if err != nil {
		return nil, fmt.Errorf("open the work tree: %w", err)
	}
	if a.Child != nil && a.Child.Place != nil {
		root, err := os.OpenRoot(filepath.Join(at, filepath.FromSlash(path)) + "/") // the slash keeps it from blocking on a named pipe
		if err != nil {
			return nil, fmt.Errorf("open the working directory: %w", err)
		}
		return root, nil
	}
	return a.Workspace.OpenWorkDir(at, path)
}

// folder returns a folder that is opened at its first use. s.close closes it.
func (s *treeView) folder(path string, open func() (*os.Root, error)) tools.Folder {
	return tools.Folder{Path: path, Root: sync.OnceValues(func() (*os.Root, error) {
		root, err := open()
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened = append(s.opened, root)
		}
		return root, err
	})}
}

// requireWorkDir returns an error if the working directory is missing. If nothing has changed yet, it looks in the
// checkout itself, so that no sandbox has to start for this.
func (a *Agent) requireWorkDir(s *treeView) error {
	if !a.Workspace.Untouched() {
		_, err := s.dir.Root()
		return err
	}
	root, err := a.Workspace.OpenWorkDir(a.Workspace.Root(), a.Job.Repository.Path)
	if err != nil {
		return err
	}
	return root.Close()
}

// checkout returns which files searches and listings leave out: those that git would not commit. If the index cannot be
// read, patterns alone decide, since that error ends the run elsewhere.
func (s *treeView) checkout(ctx context.Context, c *gitops.Checkout) files.Checkout {
	return files.Checkout{
		Top: s.top, Exclude: c.ExcludeRules(), IgnoreCase: c.IgnoresCase(),
		Tracked: sync.OnceValue(func() []string {
			tracked, _ := c.Tracked(ctx)
			return tracked
		}),
	}
}

func (s *treeView) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range s.opened {
		_ = root.Close()
	}
}
