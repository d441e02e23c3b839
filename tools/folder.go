package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/internal/pathname"
)

// Folder is a folder as commands see it.
type Folder struct {
	Path string // absolute, as it is shown
	// Root opens the folder, once. It is asked when a call first needs it; who made the
	// Folder closes what it gives when no call runs any more.
	Root func() (*os.Root, error)
}

// OutsideError says that a path leads out of a folder, and where.
type OutsideError struct{ Path string }

func (e *OutsideError) Error() string { return "it leads to " + e.Path }

// IsOutside says whether an error is that of a path that leads out of a folder.
func IsOutside(err error) bool {
	_, is := errors.AsType[*OutsideError](err)
	return is
}

// mostLinks is how many links one path leads over, as path_resolution(7) has it.
const mostLinks = 40

// Below gives an absolute path as relative to the folder that it is in.
func (f Folder) Below(path string) (inside string, ok bool) { return Below(f.Path, path) }

// Follow says to what an absolute path leads once its links are followed, relative to
// the folder. It is an *OutsideError for a path that leads elsewhere.
func (f Folder) Follow(path string) (target string, err error) {
	inside, ok := f.Below(path)
	if !ok {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", err
		}
		if inside, ok = f.Below(real); !ok {
			return "", &OutsideError{real}
		}
	}
	root, err := f.Root()
	if err != nil {
		return "", err
	}
	return f.follow(root, inside)
}

// Stat tells of what an absolute path leads to. It is an *OutsideError for a path
// that leads elsewhere.
func (f Folder) Stat(path string) (fs.FileInfo, error) {
	target, err := f.Follow(path)
	if err != nil {
		return nil, err
	}
	root, err := f.Root()
	if err != nil {
		return nil, err
	}
	return root.Lstat(target)
}

func (f Folder) follow(root *os.Root, inside string) (target string, err error) {
	target, rest := ".", inside
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(target, name)
		if !filepath.IsLocal(next) {
			return "", &OutsideError{filepath.Join(f.Path, next, rest)}
		}
		link, err := root.Readlink(next)
		if errors.Is(err, syscall.EINVAL) { // no link
			target = next
			continue
		}
		if links++; err == nil && links > mostLinks {
			err = &os.PathError{Op: "open", Path: inside, Err: syscall.ELOOP}
		}
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(link) {
			inside, ok := f.Below(filepath.Clean(link))
			if !ok {
				return "", &OutsideError{filepath.Join(link, rest)}
			}
			target, link = ".", inside
		}
		rest = link + string(filepath.Separator) + rest
	}
	return target, nil
}

// Below gives an absolute path as relative to a folder that it is in, however the
// folder is spelt: where one above it is a link (macOS's /tmp), there are two ways.
func Below(dir, path string) (inside string, ok bool) {
	if inside, is := pathname.Below(dir, path); is {
		return inside, true
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	return pathname.Below(real, path)
}
