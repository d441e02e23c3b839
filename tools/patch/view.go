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
type hiddenError struct{ why string }

func (e *hiddenError) Error() string { return "it can't be read: " + e.why }

// view returns the commands' view; nil shows everything.
func (p *Patcher) view() (*grants.View, error) {
	if p.options.View == nil {
		return nil, nil
	}
	return p.options.View()
}

// requireVisible returns an error for the first name that is hidden from commands, whether it exists or not. Names are relative to
// Dir.
func (p *Patcher) requireVisible(view *grants.View, names []string) error {
	dir := realPath(p.options.Dir.Path)
	for _, name := range names {
		if why := view.Hides(filepath.Join(dir, filepath.FromSlash(name))); why != "" {
			return hiddenPathError(name, why)
		}
	}
	return nil
}

// hiddenPathError returns the error for a hidden file, in the same words as the reading tools.
func hiddenPathError(name, why string) error { return fmt.Errorf("%s can't be read: %s", name, why) }

// asHiddenError reports whether an error comes from a hidden path.
func asHiddenError(err error) error {
	var hidden *hiddenError
	var named *tree.PathError
	if !errors.As(err, &hidden) || !errors.As(err, &named) {
		return nil
	}
	return hiddenPathError(named.Path, hidden.why)
}

// viewTree is the tree as commands see it. It refuses hidden paths before it opens them.
type viewTree struct {
	tree.Dir
	view *grants.View
	path string // absolute
}

func (p *Patcher) tree(view *grants.View) (tree.Dir, error) {
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

func (s viewTree) requireVisible(name string) error {
	if why := s.view.Hides(filepath.Join(s.path, name)); why != "" {
		return &hiddenError{why}
	}
	return nil
}

func (s viewTree) Lstat(name string) (fs.FileInfo, error) {
	if err := s.requireVisible(name); err != nil {
		return nil, err
	}
	info, err := s.Dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if why := s.view.HidesInfo(info); why != "" {
		return nil, &hiddenError{why}
	}
	return info, nil
}

func (s viewTree) Open(name string) (*os.File, error) {
	if _, err := s.Lstat(name); err != nil {
		return nil, err
	}
	file, err := s.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	if why := s.view.HidesFile(file); why != "" {
		return nil, errors.Join(&hiddenError{why}, file.Close())
	}
	return file, nil
}

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

func (s viewTree) Mkdir(name string) error {
	if err := s.requireVisible(name); err != nil {
		return err
	}
	return s.Dir.Mkdir(name)
}

func (s viewTree) Link(name, second string) error    { return s.withBoth(s.Dir.Link, name, second) }
func (s viewTree) Exchange(name, other string) error { return s.withBoth(s.Dir.Exchange, name, other) }
func (s viewTree) Rename(name, to string) error      { return s.withBoth(s.Dir.Rename, name, to) }

// withBoth calls do with two names, if both are visible.
func (s viewTree) withBoth(do func(name, other string) error, name, other string) error {
	if err := errors.Join(s.requireVisible(name), s.requireVisible(other)); err != nil {
		return err
	}
	return do(name, other)
}
