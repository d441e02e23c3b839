package workflows

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Tree reads the files of a commit. For a missing file, Read fails with fs.ErrNotExist; the other
// functions return nothing.
type Tree struct {
	Read func(path string) ([]byte, error) // returns a file's content and follows no link
	Link func(path string) (target string, err error)
	List func(folder string) (files []string, err error) // returns the names of the files in a folder
}

const maxLinks = 16 // how many links are followed for one path

// resolve returns a path with all links followed. It returns "" if the path leads out of the tree.
func (t Tree) resolve(name string) (string, error) {
	links := 0
again:
	name = path.Clean(name)
	if name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") {
		return "", nil
	}
	for at := 0; at < len(name); {
		end := len(name)
		if i := strings.IndexByte(name[at:], '/'); i >= 0 {
			end = at + i
		}
		target, err := t.Link(name[:end])
		if err != nil {
			return "", err
		}
		if target != "" {
			if links++; links > maxLinks {
				return "", nil
			}
			name = path.Join(path.Dir(name[:end]), target) + name[end:]
			goto again
		}
		at = end + 1
	}
	return name, nil
}

// file reads a file, following links. real is its own path, or "" if there is no file.
func (t Tree) file(name string) (real string, content []byte, err error) {
	if real, err = t.resolve(name); err != nil || real == "" || real == "." {
		return "", nil, err
	}
	content, err = t.Read(real)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	return real, content, err
}
