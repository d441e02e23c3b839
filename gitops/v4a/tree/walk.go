package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// maxLinks is the largest number of symbolic links in one path.
const maxLinks = 40

// walk resolves one path of a patch from the root of the tree, element by element, following links.
type walk struct {
	planner *planner
	name    string   // the path as written in the patch
	pending []string // path elements still to follow
	at      []string // current position, from the root
	dirs    []Dir    // open directories: the root and the elements of at
	absent  bool     // at does not exist in the tree
	links   int
}

// Values of find's parameter follow.
const (
	followLink = true
	linkItself = false
)

// find resolves a path of the patch after the sections so far. If follow is set, it follows a final
// link. Otherwise it returns the link itself, which becomes one of the planner's files only when it
// is removed.
func (p *planner) find(name string, follow bool) (*file, error) {
	parts, problem := splitPath(name)
	if problem != "" {
		return nil, p.refuse(name, problem, nil)
	}
	w := &walk{planner: p, name: name, pending: parts, dirs: []Dir{p.tree}}
	defer w.leave(0)
	for len(w.pending) > 0 {
		next := w.pending[0]
		w.pending = w.pending[1:]
		f, err := w.step(next, follow)
		if f != nil || err != nil {
			return f, err
		}
	}
	return nil, w.refuse("this is a directory; name a file", nil)
}

// step follows one element. It returns a file only at the end of the path.
func (w *walk) step(name string, followLast bool) (*file, error) {
	if name == ".." {
		return nil, w.up()
	}
	if pathname.MeansDotGit(name) {
		return nil, w.refuse("the repository's own .git is not the patch's to change", nil)
	}
	full := path.Join(path.Join(w.at...), name)
	last := len(w.pending) == 0
	if f := w.planner.files[full]; f != nil {
		if last {
			return f, nil
		}
		return nil, w.refuse(full+" is a file in this patch and cannot be a directory as well", nil)
	}
	info, err := w.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.stepIntoNothing(name, full)
	case err != nil:
		return nil, w.refuse(fmt.Sprintf("%s cannot be looked at: %v", full, err), err)
	case info.Mode()&fs.ModeSymlink != 0:
		return w.stepOnLink(name, full, info, last && !followLast)
	case info.IsDir():
		return nil, w.enter(name)
	case !last:
		return nil, w.refuse(full+" is not a directory", nil)
	case !info.Mode().IsRegular():
		return nil, w.refuse("this is not a regular file", nil)
	}
	return w.load(name, full, info)
}

// load reads a file that is to be changed. It refuses a file that is too large, alone or together
// with the others.
func (w *walk) load(name, full string, info fs.FileInfo) (*file, error) {
	if info.Size() > MaxFileSize {
		return nil, w.refuse(fmt.Sprintf("the file has %d bytes, more than the %d that a patch may change; use a command", info.Size(), MaxFileSize), nil)
	}
	w.planner.loadedBytes += info.Size()
	if w.planner.loadedBytes > maxTotalSize {
		return nil, w.refuse(fmt.Sprintf("with this file the patch changes more than %d bytes of files; use several patches, or a command", maxTotalSize), nil)
	}
	text, err := w.read(name, info)
	if err != nil {
		return nil, w.refuse(fmt.Sprintf("cannot be read: %v", err), err)
	}
	return w.planner.addFile(&file{path: full, before: info, exists: true, original: text, content: text, modeSource: info}), nil
}

// read returns the content of the file seen. It fails if the file grew.
func (w *walk) read(name string, seen fs.FileInfo) (string, error) {
	r, err := w.dir().Open(name, seen)
	if err != nil {
		return "", err
	}
	size := seen.Size()
	var b strings.Builder
	b.Grow(int(size))
	n, err := io.CopyBuffer(&b, io.LimitReader(r, size+1), w.planner.buffer)
	if err == nil && n > size {
		err = errors.New("it grew while it was read")
	}
	return b.String(), errors.Join(err, r.Close())
}

func (w *walk) lstat(name string) (fs.FileInfo, error) {
	if w.absent {
		return nil, fs.ErrNotExist
	}
	return w.dir().Lstat(name)
}

func (w *walk) dir() Dir { return w.dirs[len(w.dirs)-1] }

// stepIntoNothing follows an element that is not in the tree. At the end of the path, it returns a
// new, missing file; before the end, it returns nil.
func (w *walk) stepIntoNothing(name, full string) (*file, error) {
	if len(w.pending) > 0 {
		w.absent = true
		w.at = append(w.at, name)
		return nil, nil
	}
	if w.planner.folders[full] {
		return nil, w.refuse("this patch makes a directory of that name; name a file", nil)
	}
	return w.planner.addFile(&file{path: full}), nil
}

// stepOnLink follows a link: it puts the elements of the link's target before the pending ones, and
// returns nil. If itself is set, it returns the link as a file instead.
func (w *walk) stepOnLink(name, full string, info fs.FileInfo, itself bool) (*file, error) {
	target, err := w.dir().Readlink(name)
	if err != nil {
		return nil, w.refuse(fmt.Sprintf("the link %s cannot be read: %v", full, err), err)
	}
	if itself {
		return &file{path: full, before: info, exists: true, original: target, content: target}, nil
	}
	if w.links++; w.links > maxLinks {
		return nil, w.refuse("the path leads through too many links", nil)
	}
	if path.IsAbs(target) {
		return nil, w.refuse(fmt.Sprintf("the link %s is absolute, and only relative links are followed; name the file that it leads to", full), nil)
	}
	parts := slices.DeleteFunc(strings.Split(target, "/"), func(e string) bool { return e == "" || e == "." })
	w.pending = append(parts, w.pending...)
	return nil, nil
}

// enter opens a directory and moves into it.
func (w *walk) enter(name string) error {
	sub, err := w.dir().Sub(name)
	if err != nil {
		return w.refuse(fmt.Sprintf("the directory %s cannot be opened: %v", name, err), err)
	}
	w.dirs = append(w.dirs, sub)
	w.at = append(w.at, name)
	return nil
}

// up follows "..". It only occurs in link targets, because paths are cleaned before.
func (w *walk) up() error {
	if w.absent {
		return w.refuse("a link of the path leads nowhere", fs.ErrNotExist)
	}
	if len(w.at) == 0 {
		return w.refuse("a link of the path leads out of the working directory", nil)
	}
	w.at = w.at[:len(w.at)-1]
	w.leave(len(w.at))
	return nil
}

// leave closes the directories deeper than depth. Errors do not matter, because nothing was written
// through them.
func (w *walk) leave(depth int) {
	for len(w.dirs) > depth+1 {
		_ = w.dir().Close()
		w.dirs = w.dirs[:len(w.dirs)-1]
	}
}

func (w *walk) refuse(problem string, err error) error {
	return w.planner.refuse(w.name, problem, err)
}
