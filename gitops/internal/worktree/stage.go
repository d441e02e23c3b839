package worktree

import (
	"context"
	"errors"
	"io"
	"os"
	"path"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// stage is a private folder in which git converts copies of files. git must not get the path of a
// layer, follow links made by commands, or overwrite files of others.
type stage struct {
	work *Worktree
	dir  string
	root *os.Root
}

// newStage makes an empty stage. The caller removes it.
func (w *Worktree) newStage() (*stage, error) {
	dir, err := os.MkdirTemp(w.repo.PrivateDir, "files-")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &stage{w, dir, root}, nil
}

// remove deletes the stage. A nil stage is allowed.
func (s *stage) remove() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.root.Close(), os.RemoveAll(s.dir), os.RemoveAll(s.index()))
}

// index returns the path of the stage's index.
func (s *stage) index() string { return s.dir + ".index" }

// add writes a file into the stage. It overwrites an existing file, such as .gitattributes.
func (s *stage) add(ctx context.Context, name string, content io.Reader) error {
	if err := s.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, regularfile.Until(ctx, content))
	return errors.Join(err, f.Close())
}

// runGit runs git with the stage as its work tree, and an index of the given entries. paths is git's
// standard input.
func (s *stage) runGit(ctx context.Context, entries []index.Entry, paths io.Reader, args ...string) ([]byte, error) {
	if err := index.WriteNew(s.index(), entries); err != nil {
		return nil, err
	}
	git, err := s.work.repo.PrivateGit()
	if err != nil {
		return nil, err
	}
	return git.With("GIT_INDEX_FILE="+s.index(), "GIT_WORK_TREE="+s.dir).Run(ctx, s.dir, paths, args...)
}
