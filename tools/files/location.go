package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

// resolver resolves the files and folders named by calls.
type resolver Options

// refusal is an error that tells the model why a file is not opened.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuseRead(name, why string) refusal {
	return refusal(name + " can't be read: " + why)
}

func refuseGitDirectory(name string) refusal {
	return refusal(name + " is in git's own directory, which is not shown; use git commands to ask git")
}

// Tool returns a tool that decodes its arguments and passes them to do. A refusal becomes a result with the tool's name.
func Tool[A any](spec tools.Spec, do func(context.Context, A) (tools.Result, error)) tools.Tool {
	return tools.Tool{Spec: spec, Run: tools.Decoded(func(ctx context.Context, _ tools.Call, a A) (tools.Result, error) {
		result, err := do(ctx, a)
		if words, ok := Refused(err); ok {
			return tools.Refuse(spec.Name + ": " + words), nil
		}
		return result, err
	})}
}

// location is a path below an open root. The file may not exist.
type location struct {
	root        *os.Root
	path        string // path relative to root, with links resolved
	displayPath string // path for messages and lists, with links as in the call
	calledName  string // path as in the call
	// rootPath is the folder to which displayPath is relative, for saved outputs and files outside the
	// working directory; else "". If it is set, root belongs to the location and close closes it.
	rootPath string
	view     *grants.View
}

func (s location) close() {
	if s.rootPath != "" {
		s.root.Close()
	}
}

// locate returns the location of a path in a call. The error is a refusal.
func (p resolver) locate(name string) (location, error) {
	if name == "" {
		return location{}, refusal("the path is empty")
	}
	path := filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir.Path, path)
	}
	if inside, ok := tools.Below(p.Outputs, path); ok {
		root, err := os.OpenRoot(p.Outputs)
		if err != nil {
			return location{}, refusal(fmt.Sprintf("there is no output %s", inside))
		}
		return location{root: root, path: inside, displayPath: inside, calledName: inside, rootPath: p.Outputs}, nil
	}
	var view *grants.View
	if p.View != nil {
		var err error
		if view, err = p.View(); err != nil {
			return location{}, err
		}
	}
	inside, ok := p.Dir.Below(path)
	switch {
	case !ok && view == nil:
		return location{}, refusal(fmt.Sprintf("%s is outside the working directory %s", name, p.Dir.Path))
	case !ok:
		return p.locateOutside(view, path, name)
	}
	root, err := p.Dir.Root()
	if err != nil {
		return location{}, err
	}
	target, leadsTo := p.resolveTarget(path, inside)
	if inGitDirectory(inside) || inGitDirectory(leadsTo) {
		return location{}, refuseGitDirectory(name)
	}
	if why := view.Hides(filepath.Join(p.Dir.Path, leadsTo)); why != "" { // whether it is there or not
		return location{}, refuseRead(name, why)
	}
	return location{root: root, path: target, displayPath: inside, calledName: name, view: view}, nil
}

// locateOutside resolves a path outside the working directory in the commands' view.
func (p resolver) locateOutside(view *grants.View, path, name string) (location, error) {
	rootPath, inside, err := view.Locate(path)
	if hidden := (*grants.HiddenError)(nil); errors.As(err, &hidden) {
		return location{}, refuseRead(name, hidden.Reason)
	}
	if err != nil {
		return location{}, refuseOpen("file", name, err)
	}
	if inGitDirectory(inside) || inGitDirectory(path) {
		return location{}, refuseGitDirectory(name)
	}
	root, err := os.OpenRoot(rootPath + "/") // the slash keeps it from blocking on a named pipe
	if err != nil {
		return location{}, refuseOpen("file", name, err)
	}
	return location{root: root, path: inside, displayPath: strings.TrimPrefix(path, "/"), calledName: name, rootPath: "/", view: view}, nil
}

// open opens a regular file. The error is a refusal.
func (p resolver) open(name string) (*os.File, error) {
	found, err := p.locate(name)
	if err != nil {
		return nil, err
	}
	defer found.close()
	return found.open()
}

// openTree opens a folder with its ignore rules. The caller closes it. The error is a refusal, or an
// unreadable working directory.
func (p resolver) openTree(location location) (*tree, error) {
	root, err := location.root.OpenRoot(location.path + "/") // the slash keeps it from blocking on a named pipe
	if err != nil {
		if info, err := location.root.Stat(location.path); err == nil && !info.IsDir() {
			return nil, refusal(location.calledName + " is not a directory")
		}
		return nil, refuseOpen("directory", location.calledName, err)
	}
	rules, err := p.rulesFor(location)
	rules.View = location.view
	if err == nil {
		rules.Hidden, err = location.hiddenIn(root)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	opened, err := walk.Open(root, rules)
	if err != nil {
		return nil, errors.Join(refuseOpen("directory", location.calledName, err), root.Close())
	}
	return &tree{opened, root}, nil
}

// tree is an open walk.Tree with its root.
type tree struct {
	*walk.Tree
	root *os.Root
}

func (t *tree) close() {
	t.Tree.Close()
	t.root.Close()
}

// rulesFor returns a folder's ignore rules, including those above.
func (p resolver) rulesFor(location location) (walk.Rules, error) {
	if location.rootPath != "" {
		return walk.Rules{All: true}, nil
	}
	from, prefix := p.Dir, "."
	if above, ok := p.Checkout.Top.Below(p.Dir.Path); ok && above != "." {
		from, prefix = p.Checkout.Top, above
	}
	top, err := from.Root()
	if err != nil {
		return walk.Rules{}, err
	}
	return p.Checkout.rules().Into(top, filepath.ToSlash(filepath.Join(prefix, location.path)))
}

// resolveTarget returns the path to open and its target after following links, both relative. They only
// differ for links that lead out. Both are the path itself if unknown.
func (p resolver) resolveTarget(path, inside string) (target, leadsTo string) {
	target, err := p.Dir.Resolve(path)
	if err == nil {
		return target, target
	}
	if outside, ok := errors.AsType[*tools.OutsideError](err); ok {
		if leadsTo, err := filepath.Rel(p.Dir.Path, outside.Path); err == nil {
			return inside, leadsTo
		}
	}
	return inside, inside
}

// inGitDirectory reports whether a path is in a .git folder. It ignores case, as some file systems do.
func inGitDirectory(inside string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(inside), "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// open opens a location's regular file without blocking on a pipe. It checks type and real place after
// opening, because commands control links in the working directory.
func (s location) open() (*os.File, error) {
	file, err := s.root.OpenFile(s.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, refuseOpen("file", s.calledName, err)
	}
	if err := cmp.Or(s.refuseIrregular(file), s.refuseHidden(file)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (s location) refuseIrregular(file *os.File) error {
	switch info, err := file.Stat(); {
	case err != nil:
		return refuseOpen("file", s.calledName, err)
	case info.IsDir():
		return refusal(s.calledName + " is a directory; name a file in it")
	case !info.Mode().IsRegular():
		return refusal(s.calledName + " is not a regular file")
	}
	return nil
}

// hiddenIn lists hidden paths of an open folder. A wholly hidden folder is refused.
func (s location) hiddenIn(root *os.Root) ([]string, error) {
	if s.view == nil {
		return nil, nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, refuseOpen("directory", s.calledName, err)
	}
	defer dir.Close()
	if err := s.refuseHidden(dir); err != nil {
		return nil, err
	}
	return s.view.HiddenBelow(realPath(dir)), nil
}

// refuseHidden refuses hidden files and git's own, by their real place.
func (s location) refuseHidden(file *os.File) error {
	if s.view == nil {
		return nil
	}
	if inGitDirectory(realPath(file)) {
		return refuseGitDirectory(s.calledName)
	}
	if why := s.view.HidesFile(file); why != "" {
		return refuseRead(s.calledName, why)
	}
	return nil
}

// realPath returns an open file's real path from the kernel, or "" on systems without hidden files.
func realPath(file *os.File) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return ""
	}
	return path
}

func refuseOpen(kind, name string, err error) refusal {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refusal(fmt.Sprintf("there is no %s %s", kind, name))
	case errors.Is(err, fs.ErrPermission):
		return refusal("no permission to read " + name)
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err.Error() == "path escapes from parent" { // os.Root has no error value for it
		return refusal(name + " is a link that leads out of the working directory")
	}
	return refuseRead(name, err.Error())
}
