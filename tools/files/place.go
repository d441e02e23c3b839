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

// place resolves the files and folders named by calls.
type place Options

// refusal is an error that tells the model why a file is not opened.
type refusal string

func (r refusal) Error() string { return string(r) }

func unreadable(name, why string) refusal {
	return refusal(name + " can't be read: " + why)
}

func ofGit(name string) refusal {
	return refusal(name + " is in git's own directory, which is not shown; use git commands to ask git")
}

// Tool returns a tool that decodes its arguments and passes them to do. A refusal becomes a result with the tool's name.
func Tool[A any](spec tools.Spec, do func(context.Context, A) (tools.Result, error)) tools.Tool {
	return tools.Tool{Spec: spec, Run: tools.Decoded(func(ctx context.Context, _ tools.Call, a A) (tools.Result, error) {
		result, err := do(ctx, a)
		if words, is := Refused(err); is {
			return tools.Refuse(spec.Name + ": " + words), nil
		}
		return result, err
	})}
}

// spot is a path below an open root. The file may not exist.
type spot struct {
	root   *os.Root
	inside string // path relative to root, with links resolved
	shown  string // path relative to root, as in the call
	name   string // path as in the call
	// base is the origin of shown, if that is neither relative nor in the working directory. root
	// is then the spot's own.
	base string
	view *grants.View
}

func (s spot) close() {
	if s.base != "" {
		s.root.Close()
	}
}

// find returns the spot for a path in a call. The error is a refusal.
func (p place) find(name string) (spot, error) {
	if name == "" {
		return spot{}, refusal("the path is empty")
	}
	path := filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir.Path, path)
	}
	if inside, ok := tools.Below(p.Outputs, path); ok {
		root, err := os.OpenRoot(p.Outputs)
		if err != nil {
			return spot{}, refusal(fmt.Sprintf("there is no output %s", inside))
		}
		return spot{root: root, inside: inside, shown: inside, name: inside, base: p.Outputs}, nil
	}
	var view *grants.View
	if p.View != nil {
		var err error
		if view, err = p.View(); err != nil {
			return spot{}, err
		}
	}
	inside, ok := p.Dir.Below(path)
	switch {
	case !ok && view == nil:
		return spot{}, refusal(fmt.Sprintf("%s is outside the working directory %s", name, p.Dir.Path))
	case !ok:
		return p.outside(view, path, name)
	}
	root, err := p.Dir.Root()
	if err != nil {
		return spot{}, err
	}
	target, leadsTo := p.target(path, inside)
	if inGitDirectory(inside) || inGitDirectory(leadsTo) {
		return spot{}, ofGit(name)
	}
	if why := view.Hides(filepath.Join(p.Dir.Path, leadsTo)); why != "" { // whether it is there or not
		return spot{}, unreadable(name, why)
	}
	return spot{root: root, inside: target, shown: inside, name: name, view: view}, nil
}

// outside resolves a path outside the working directory in the commands' view.
func (p place) outside(view *grants.View, path, name string) (spot, error) {
	at, inside, err := view.Locate(path)
	if hidden := (*grants.HiddenError)(nil); errors.As(err, &hidden) {
		return spot{}, unreadable(name, hidden.Reason)
	}
	if err != nil {
		return spot{}, notOpened("file", name, err)
	}
	if inGitDirectory(inside) || inGitDirectory(path) {
		return spot{}, ofGit(name)
	}
	root, err := os.OpenRoot(at + "/") // the slash keeps it from blocking on a named pipe
	if err != nil {
		return spot{}, notOpened("file", name, err)
	}
	return spot{root: root, inside: inside, shown: strings.TrimPrefix(path, "/"), name: name, base: "/", view: view}, nil
}

// open opens a regular file. The error is a refusal.
func (p place) open(name string) (*os.File, error) {
	found, err := p.find(name)
	if err != nil {
		return nil, err
	}
	defer found.close()
	return found.open()
}

// tree opens a folder with its ignore rules. The caller closes it. The error is a refusal, or an
// unreadable working directory.
func (p place) tree(at spot) (*tree, error) {
	root, err := at.root.OpenRoot(at.inside + "/") // the slash keeps it from blocking on a named pipe
	if err != nil {
		if info, err := at.root.Stat(at.inside); err == nil && !info.IsDir() {
			return nil, refusal(at.name + " is not a directory")
		}
		return nil, notOpened("directory", at.name, err)
	}
	left, err := p.rulesFor(at)
	left.View = at.view
	if err == nil {
		left.Hidden, err = at.hiddenIn(root)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	opened, err := walk.Open(root, left)
	if err != nil {
		return nil, errors.Join(notOpened("directory", at.name, err), root.Close())
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
func (p place) rulesFor(at spot) (walk.Rules, error) {
	if at.base != "" {
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
	return p.Checkout.rules().Into(top, filepath.ToSlash(filepath.Join(prefix, at.inside)))
}

// target returns the path to open and its target after following links, both relative. They only
// differ for links that lead out. Both are the path itself if unknown.
func (p place) target(path, inside string) (target, leadsTo string) {
	target, err := p.Dir.Resolve(path)
	if err == nil {
		return target, target
	}
	if outside, is := errors.AsType[*tools.OutsideError](err); is {
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

// open opens a spot's regular file without blocking on a pipe. It checks type and real place after
// opening, because commands control links in the working directory.
func (s spot) open() (*os.File, error) {
	file, err := s.root.OpenFile(s.inside, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, notOpened("file", s.name, err)
	}
	if err := cmp.Or(s.mustBeRegular(file), s.mayShow(file)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (s spot) mustBeRegular(file *os.File) error {
	switch info, err := file.Stat(); {
	case err != nil:
		return notOpened("file", s.name, err)
	case info.IsDir():
		return refusal(s.name + " is a directory; name a file in it")
	case !info.Mode().IsRegular():
		return refusal(s.name + " is not a regular file")
	}
	return nil
}

// hiddenIn lists hidden paths of an open folder. A wholly hidden folder is refused.
func (s spot) hiddenIn(root *os.Root) ([]string, error) {
	if s.view == nil {
		return nil, nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, notOpened("directory", s.name, err)
	}
	defer dir.Close()
	if err := s.mayShow(dir); err != nil {
		return nil, err
	}
	return s.view.HiddenBelow(realPath(dir)), nil
}

// mayShow refuses hidden files and git's own, by their real place.
func (s spot) mayShow(file *os.File) error {
	if s.view == nil {
		return nil
	}
	if inGitDirectory(realPath(file)) {
		return ofGit(s.name)
	}
	if why := s.view.HidesFile(file); why != "" {
		return unreadable(s.name, why)
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

func notOpened(kind, name string, err error) refusal {
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
	return unreadable(name, err.Error())
}
