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

// refusal is an error that tells the model why a file is not opened.
type refusal string

func (r refusal) Error() string { return string(r) }

// refuseRead returns the refusal to read a file for this reason.
func refuseRead(name, reason string) refusal {
	return refusal(name + " can't be read: " + reason)
}

// refuseGitDirectory returns the refusal to read a file in a .git folder.
func refuseGitDirectory(name string) refusal {
	return refusal(name + " is in git's own directory, which is not shown; use git commands to ask git")
}

// Tool returns a tool that decodes its arguments and passes them to run. If run returns a refusal, that becomes the
// result, after the tool's name.
func Tool[A any](spec tools.Spec, run func(context.Context, A) (tools.Result, error)) tools.Tool {
	return tools.Tool{Spec: spec, Run: tools.Decoded(func(ctx context.Context, _ tools.Call, a A) (tools.Result, error) {
		result, err := run(ctx, a)
		if words, isRefusal := Refused(err); isRefusal {
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
	// rootPath is the folder to which displayPath is relative, for saved outputs and files outside the working directory.
	// For files in the working directory it is "". If it is set, close closes root.
	rootPath string
	view     *grants.View
}

// close closes root, unless that is the working directory.
func (l location) close() {
	if l.rootPath != "" {
		l.root.Close()
	}
}

// locate returns the location of a path in a call. It returns a refusal if the model may not read there.
func (o Options) locate(name string) (location, error) {
	if name == "" {
		return location{}, refusal("the path is empty")
	}
	path := filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir.Path, path)
	}
	if inside, isOutput := tools.Below(o.Outputs, path); isOutput {
		root, err := os.OpenRoot(o.Outputs)
		if err != nil {
			return location{}, refusal(fmt.Sprintf("there is no output %s", inside))
		}
		return location{root: root, path: inside, displayPath: inside, calledName: inside, rootPath: o.Outputs}, nil
	}
	var view *grants.View
	if o.View != nil {
		var err error
		if view, err = o.View(); err != nil {
			return location{}, err
		}
	}
	inside, isInside := o.Dir.Below(path)
	switch {
	case !isInside && view == nil:
		return location{}, refusal(fmt.Sprintf("%s is outside the working directory %s", name, o.Dir.Path))
	case !isInside:
		return o.locateOutside(view, path, name)
	}
	root, err := o.Dir.Root()
	if err != nil {
		return location{}, err
	}
	target, leadsTo := o.resolveTarget(path, inside)
	if inGitDirectory(inside) || inGitDirectory(leadsTo) {
		return location{}, refuseGitDirectory(name)
	}
	if reason := view.Hides(filepath.Join(o.Dir.Path, leadsTo)); reason != "" { // even if it does not exist
		return location{}, refuseRead(name, reason)
	}
	return location{root: root, path: target, displayPath: inside, calledName: name, view: view}, nil
}

// locateOutside returns the location of an absolute path outside the working directory. view decides which files
// commands can see. It returns a refusal for others.
func (o Options) locateOutside(view *grants.View, path, name string) (location, error) {
	rootPath, inside, err := view.Locate(path)
	if hidden, isHidden := errors.AsType[*grants.HiddenError](err); isHidden {
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

// open opens a regular file named by a call. It returns a refusal if the model may not read it.
func (o Options) open(name string) (*os.File, error) {
	found, err := o.locate(name)
	if err != nil {
		return nil, err
	}
	defer found.close()
	return found.open()
}

// openTree opens a folder with its ignore rules. The caller closes it. It returns a refusal if the model may not read
// the folder.
func (o Options) openTree(location location) (*tree, error) {
	root, err := location.root.OpenRoot(location.path + "/") // the slash keeps it from blocking on a named pipe
	if err != nil {
		if info, statErr := location.root.Stat(location.path); statErr == nil && !info.IsDir() {
			return nil, refusal(location.calledName + " is not a directory")
		}
		return nil, refuseOpen("directory", location.calledName, err)
	}
	rules, err := o.rulesFor(location)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	rules.View = location.view
	if rules.Hidden, err = location.hiddenIn(root); err != nil {
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

// close closes the tree and its root.
func (t *tree) close() {
	t.Tree.Close()
	t.root.Close()
}

// rulesFor returns the ignore rules of a folder, including those of the folders above it. Outside of the working
// directory, nothing is ignored.
func (o Options) rulesFor(location location) (walk.Rules, error) {
	if location.rootPath != "" {
		return walk.Rules{All: true}, nil
	}
	from, prefix := o.Dir, "." // prefix is the working directory, relative to the folder from
	if workDir, isInside := o.Checkout.Top.Below(o.Dir.Path); isInside && workDir != "." {
		from, prefix = o.Checkout.Top, workDir
	}
	top, err := from.Root()
	if err != nil {
		return walk.Rules{}, err
	}
	return o.Checkout.rules().Into(top, filepath.ToSlash(filepath.Join(prefix, location.path)))
}

// resolveTarget follows the links in an absolute path. inside is the same path relative to the working directory; the
// results are relative, too. target is the path to open, and leadsTo the path behind the links. They differ only if a
// link leads out of the working directory: then target is inside. A path that cannot be resolved stays as it is.
func (o Options) resolveTarget(path, inside string) (target, leadsTo string) {
	target, err := o.Dir.Resolve(path)
	if err == nil {
		return target, target
	}
	if outside, isOutside := errors.AsType[*tools.OutsideError](err); isOutside {
		if leadsTo, err := filepath.Rel(o.Dir.Path, outside.Path); err == nil {
			return inside, leadsTo
		}
	}
	return inside, inside
}

// inGitDirectory reports whether a path is a .git folder or in one. It ignores case, as some file systems do.
func inGitDirectory(inside string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(inside), "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// open opens the regular file at the location. It does not block on a named pipe. It checks the file's type and real
// path after opening it, because commands can change links in the working directory.
func (l location) open() (*os.File, error) {
	file, err := l.root.OpenFile(l.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, refuseOpen("file", l.calledName, err)
	}
	if err := cmp.Or(l.refuseIrregular(file), l.refuseHidden(file)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// refuseIrregular returns a refusal if an open file is not a regular file.
func (l location) refuseIrregular(file *os.File) error {
	switch info, err := file.Stat(); {
	case err != nil:
		return refuseOpen("file", l.calledName, err)
	case info.IsDir():
		return refusal(l.calledName + " is a directory; name a file in it")
	case !info.Mode().IsRegular():
		return refusal(l.calledName + " is not a regular file")
	}
	return nil
}

// hiddenIn returns the hidden paths in an open folder, relative to it. It returns a refusal if the folder itself is
// hidden.
func (l location) hiddenIn(root *os.Root) ([]string, error) {
	if l.view == nil {
		return nil, nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, refuseOpen("directory", l.calledName, err)
	}
	defer dir.Close()
	if err := l.refuseHidden(dir); err != nil {
		return nil, err
	}
	return l.view.HiddenBelow(realPath(dir)), nil
}

// refuseHidden returns a refusal if an open file or folder is hidden, or in a .git folder, by its real path.
func (l location) refuseHidden(file *os.File) error {
	if l.view == nil {
		return nil
	}
	if inGitDirectory(realPath(file)) {
		return refuseGitDirectory(l.calledName)
	}
	if reason := l.view.HidesFile(file); reason != "" {
		return refuseRead(l.calledName, reason)
	}
	return nil
}

// realPath returns an open file's path without links, as the kernel reports it, or "" on systems without /proc.
func realPath(file *os.File) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return ""
	}
	return path
}

// refuseOpen returns the refusal for an error of opening a file. kind is "file" or "directory".
func refuseOpen(kind, name string, err error) refusal {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refusal(fmt.Sprintf("there is no %s %s", kind, name))
	case errors.Is(err, fs.ErrPermission):
		return refusal("no permission to read " + name)
	}
	if pathError, isPathError := errors.AsType[*fs.PathError](err); isPathError {
		err = pathError.Err
	}
	if err.Error() == "path escapes from parent" { // os.Root has no error value for it
		return refusal(name + " is a link that leads out of the working directory")
	}
	return refuseRead(name, err.Error())
}
