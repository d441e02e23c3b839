package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place finds the files that calls name.
type place struct {
	dir     string
	root    *os.Root
	outputs string
}

// refusal is why a file is not opened, in words for the model.
type refusal string

func (r refusal) Error() string { return string(r) }

// open opens a regular file for reading. The error is a refusal.
func (p place) open(name string) (*os.File, error) {
	if name == "" {
		return nil, refusal("the path is empty")
	}
	path := filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.dir, path)
	}
	if inside, ok := below(p.outputs, path); ok {
		return openOutput(p.outputs, inside)
	}
	inside, ok := below(p.dir, path)
	if !ok {
		return nil, refusal(fmt.Sprintf("%s is outside the working directory %s", name, p.dir))
	}
	target := p.target(inside)
	if inGitDirectory(inside) || inGitDirectory(target) {
		return nil, refusal(fmt.Sprintf("%s is in git's own directory, which is not shown; use git commands to ask git", name))
	}
	return openRegular(p.root, target, name)
}

// target is where a path in the working directory leads once links are
// followed, relative to it; the path itself when that is not known.
func (p place) target(inside string) string {
	dir, err := filepath.EvalSymlinks(p.dir)
	if err != nil {
		return inside
	}
	path, err := filepath.EvalSymlinks(filepath.Join(dir, inside))
	if err != nil {
		return inside
	}
	target, err := filepath.Rel(dir, path)
	if err != nil {
		return inside
	}
	return target
}

// below gives path as relative to dir.
func below(dir, path string) (inside string, ok bool) {
	if dir == "" {
		return "", false
	}
	if inside, ok = localTo(dir, path); ok {
		return inside, true
	}
	// Where a folder above dir is a link (macOS's /tmp), the path may be spelt
	// either way.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return localTo(real, path)
	}
	return "", false
}

func localTo(dir, path string) (inside string, ok bool) {
	inside, err := filepath.Rel(dir, path)
	return inside, err == nil && filepath.IsLocal(inside)
}

// inGitDirectory ignores case: some file systems do.
func inGitDirectory(inside string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(inside), "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

func openOutput(outputs, inside string) (*os.File, error) {
	root, err := os.OpenRoot(outputs)
	if err != nil {
		return nil, refusal(fmt.Sprintf("there is no output %s", inside))
	}
	defer root.Close()
	return openRegular(root, inside, inside)
}

// openRegular opens a file without waiting for the other end of a pipe, and
// only then looks at what it opened.
func openRegular(root *os.Root, inside, name string) (*os.File, error) {
	file, err := root.OpenFile(inside, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, refusal(notOpened(name, err))
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file, nil
	}
	file.Close()
	switch {
	case err != nil:
		return nil, refusal(notOpened(name, err))
	case info.IsDir():
		return nil, refusal(name + " is a directory; name a file in it")
	}
	return nil, refusal(name + " is not a regular file")
}

func notOpened(name string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no file " + name
	case errors.Is(err, fs.ErrPermission):
		return "no permission to read " + name
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err.Error() == "path escapes from parent" { // os.Root has no error value for it
		return name + " is a link that leads out of the working directory"
	}
	return fmt.Sprintf("%s can't be read: %v", name, err)
}
