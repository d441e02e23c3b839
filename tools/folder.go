package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Folder is a folder as commands see it.
type Folder struct {
	Path string // absolute path, as shown to the model
	// Root opens the folder at its first use. Whoever made the Folder closes it after the last call.
	Root func() (*os.Root, error)
}

// OutsideError reports a path that leads out of a folder.
type OutsideError struct{ Path string }

func (e *OutsideError) Error() string { return "it leads to " + e.Path }

// IsOutside reports whether err is an OutsideError.
func IsOutside(err error) bool {
	_, isOutside := errors.AsType[*OutsideError](err)
	return isOutside
}

// maxLinks is the maximum number of links followed for one path, as in path_resolution(7).
const maxLinks = 40

// Below converts an absolute path to one relative to the folder. isBelow is false if it is not below the folder.
func (f Folder) Below(path string) (inside string, isBelow bool) { return Below(f.Path, path) }

// Resolve resolves the links in an absolute path and returns the target, relative to the folder. It returns an
// *OutsideError if the path leads out of the folder.
func (f Folder) Resolve(path string) (target string, err error) {
	inside, isBelow := f.Below(path)
	if !isBelow {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", err
		}
		if inside, isBelow = f.Below(real); !isBelow {
			return "", &OutsideError{real}
		}
	}
	root, err := f.Root()
	if err != nil {
		return "", err
	}
	return f.resolveLinks(root, inside)
}

// Stat returns information about the file at an absolute path, following links. It returns an *OutsideError if the path
// leads out of the folder.
func (f Folder) Stat(path string) (fs.FileInfo, error) {
	target, err := f.Resolve(path)
	if err != nil {
		return nil, err
	}
	root, err := f.Root()
	if err != nil {
		return nil, err
	}
	return root.Lstat(target)
}

// resolveLinks resolves the links in a path relative to the folder, element by element. It returns an *OutsideError if a link
// leads out of the folder.
func (f Folder) resolveLinks(root *os.Root, inside string) (target string, err error) {
	target, remaining := ".", inside
	for links := 0; remaining != ""; {
		var name string
		name, remaining, _ = strings.Cut(remaining, string(filepath.Separator))
		next := filepath.Join(target, name)
		if !filepath.IsLocal(next) {
			return "", &OutsideError{filepath.Join(f.Path, next, remaining)}
		}
		link, err := root.Readlink(next)
		if errors.Is(err, syscall.EINVAL) { // not a link
			target = next
			continue
		}
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", &os.PathError{Op: "open", Path: inside, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(link) {
			relativeLink, isInside := f.Below(filepath.Clean(link))
			if !isInside {
				return "", &OutsideError{filepath.Join(link, remaining)}
			}
			target, link = ".", relativeLink // start again at the folder
		}
		remaining = link + string(filepath.Separator) + remaining
	}
	return target, nil
}

// Below converts an absolute path to one relative to the folder dir. isBelow is false if it is not below dir. If dir
// contains links, such as /tmp on macOS, path may be given with or without them.
func Below(dir, path string) (inside string, isBelow bool) {
	if inside, isBelow := pathname.Below(dir, path); isBelow {
		return inside, true
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	return pathname.Below(real, path)
}
