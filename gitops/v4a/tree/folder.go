package tree

import (
	"errors"
	"io/fs"
	"path"
)

type folder struct {
	Dir
	path string
}

// folder opens a directory, through no links, and makes it if that is wanted.
func (c *commit) folder(name string, wanted bool) (*folder, error) {
	if f := c.folders[name]; f != nil {
		return f, nil
	}
	parent, err := c.folder(path.Dir(name), wanted)
	if err != nil {
		return nil, err
	}
	element := path.Base(name)
	info, err := parent.Lstat(element)
	switch {
	case errors.Is(err, fs.ErrNotExist) && wanted:
		if err := c.makeFolder(parent, element, name); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &ChangedError{Path: name, Reason: isGone}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &ChangedError{Path: name, Reason: "it is not a directory any more"}
	}
	sub, err := parent.Sub(element)
	if err != nil {
		return nil, err
	}
	c.folders[name] = &folder{Dir: sub, path: name}
	return c.folders[name], nil
}

func (c *commit) makeFolder(parent *folder, element, name string) error {
	if err := parent.Mkdir(element); err != nil {
		return err
	}
	c.undo = append(c.undo, undo{path: name, litter: true, do: func() error { return parent.Remove(element) }})
	return nil
}

// close lets go of directories that were only looked at: an error says nothing
// about what was written.
func (c *commit) close() {
	delete(c.folders, ".") // the caller's
	for _, f := range c.folders {
		_ = f.Close()
	}
}
