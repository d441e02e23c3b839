package workflows

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
)

// Tree reads the files of a commit. For a missing file, Read fails with fs.ErrNotExist; the other
// functions return nothing.
type Tree interface {
	Read(path string) ([]byte, error) // returns a file's content and follows no link
	Link(path string) (target string, err error)
	List(folder string) (files []string, err error) // returns the names of the files in a folder
}

const maxLinks = 16 // how many links are followed for one path

// resolve returns a path with all links followed. It returns "" if the path leads out of the tree.
func resolve(t Tree, name string) (string, error) {
	for range maxLinks + 1 {
		name = path.Clean(name)
		if !filepath.IsLocal(name) {
			return "", nil
		}
		next, err := followFirstLink(t, name)
		if err != nil || next == "" {
			return name, err
		}
		name = next
	}
	return "", nil
}

// followFirstLink replaces the first link in a path by its target. It returns "" without a link.
func followFirstLink(t Tree, name string) (string, error) {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		target, err := t.Link(name[:i])
		if err != nil {
			return "", err
		}
		if target != "" {
			return path.Join(path.Dir(name[:i]), target) + name[i:], nil
		}
	}
	return "", nil
}

// readFollowingLinks reads a file, following links. real is the path of the file behind the links, or "" if
// there is no file.
func readFollowingLinks(t Tree, name string) (real string, content []byte, err error) {
	if real, err = resolve(t, name); err != nil || real == "" || real == "." {
		return "", nil, err
	}
	content, err = t.Read(real)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	return real, content, err
}
