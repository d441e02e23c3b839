package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// hiddenError reports a file that commands cannot see.
type hiddenError struct{ reason string }

func (e *hiddenError) Error() string { return "it can't be read: " + e.reason }

// newView returns which files commands can see. Nil shows all.
func (p *Patcher) newView() (*grants.View, error) {
	if p.options.View == nil {
		return nil, nil
	}
	return p.options.View()
}

// requireVisible returns an error for the first path that is hidden from commands, whether the file exists or not.
// Paths are relative to Dir.
func (p *Patcher) requireVisible(view *grants.View, names []string) error {
	dir := realPath(p.options.Dir.Path)
	for _, name := range names {
		if reason := view.Hides(filepath.Join(dir, filepath.FromSlash(name))); reason != "" {
			return hiddenPathError(name, reason)
		}
	}
	return nil
}

// hiddenPathError returns the error for a hidden file, in the same words as the reading tools.
func hiddenPathError(name, reason string) error {
	return fmt.Errorf("%s can't be read: %s", name, reason)
}

// asHiddenError returns the error of hiddenPathError if err comes from a hidden path, or else nil.
func asHiddenError(err error) error {
	hidden, isHidden := errors.AsType[*hiddenError](err)
	withPath, hasPath := errors.AsType[*tree.PathError](err)
	if !isHidden || !hasPath {
		return nil
	}
	return hiddenPathError(withPath.Path, hidden.reason)
}

// viewTree is a directory tree as commands see it. Its methods return a *hiddenError for hidden paths, before they
// open anything.
type viewTree struct {
	tree.Dir
	view *grants.View
	path string // absolute
}

// openTree returns the tree below Dir, without the files that view hides. A nil view hides none.
func (p *Patcher) openTree(view *grants.View) (tree.Dir, error) {
	root, err := p.options.Dir.Root()
	if err != nil {
		return nil, err
	}
	all := tree.OnRoot(root)
	if view == nil {
		return all, nil
	}
	return viewTree{all, view, realPath(p.options.Dir.Path)}, nil
}

// requireVisible returns a *hiddenError if the view hides a path below the tree.
func (s viewTree) requireVisible(name string) error {
	if reason := s.view.Hides(filepath.Join(s.path, name)); reason != "" {
		return &hiddenError{reason}
	}
	return nil
}

// Lstat implements tree.Dir. It also refuses another path of a hidden file, such as a hard link.
func (s viewTree) Lstat(name string) (fs.FileInfo, error) {
	if err := s.requireVisible(name); err != nil {
		return nil, err
	}
	info, err := s.Dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if reason := s.view.HidesInfo(info); reason != "" {
		return nil, &hiddenError{reason}
	}
	return info, nil
}

// Open implements tree.Dir. Lstat has checked the path. Open checks the opened file, since the path may lead to another
// one by then.
func (s viewTree) Open(name string, seen fs.FileInfo) (*os.File, error) {
	file, err := s.Dir.Open(name, seen)
	if err != nil {
		return nil, err
	}
	if reason := s.view.HidesFile(file); reason != "" {
		return nil, errors.Join(&hiddenError{reason}, file.Close())
	}
	return file, nil
}

// Sub implements tree.Dir. The subdirectory has the same view.
func (s viewTree) Sub(name string) (tree.Dir, error) {
	if _, err := s.Lstat(name); err != nil {
		return nil, err
	}
	sub, err := s.Dir.Sub(name)
	if err != nil {
		return nil, err
	}
	return viewTree{sub, s.view, filepath.Join(s.path, name)}, nil
}

// Mkdir implements tree.Dir.
func (s viewTree) Mkdir(name string) error {
	if err := s.requireVisible(name); err != nil {
		return err
	}
	return s.Dir.Mkdir(name)
}

func (s viewTree) Link(name, second string) error    { return s.withBoth(s.Dir.Link, name, second) }
func (s viewTree) Exchange(name, other string) error { return s.withBoth(s.Dir.Exchange, name, other) }
func (s viewTree) Rename(name, to string) error      { return s.withBoth(s.Dir.Rename, name, to) }

// withBoth calls do with two paths if both are visible. Otherwise it returns a *hiddenError.
func (s viewTree) withBoth(do func(name, other string) error, name, other string) error {
	if err := errors.Join(s.requireVisible(name), s.requireVisible(other)); err != nil {
		return err
	}
	return do(name, other)
}
