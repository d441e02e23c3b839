package v4a

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// The limits bound the memory of a plan, in bytes: a file is held once as it is
// and once as it will be, and while it is searched with four bytes for each of
// its lines. Deleted and replaced files count as well, since [Plan.Diff] shows
// what goes.
const (
	MaxFileSize  = 64 << 20  // of a file that a patch updates, replaces or deletes
	MaxTotalSize = 256 << 20 // of all these files together
)

// Plan is what a patch changes in a tree, ready to be written. It refers to the
// tree as it was when the plan was made.
type Plan struct {
	tree    Dir
	patch   *Patch
	changed []change // sorted by path
	notes   []string
}

// NewPlan reads the files that a patch names and computes what becomes of them;
// it writes nothing. A path that leads through symbolic links stands for where
// they lead, which must be inside the tree. The time that it takes grows with
// the size of the patch and of the files; with that of a file for each of its
// sections when they cannot be told to be independent of each other.
//
// An error is a [*PathError], a [*MatchError] or that of ctx.
func NewPlan(ctx context.Context, tree Dir, patch *Patch) (*Plan, error) {
	p := &planner{tree: tree, files: map[string]*file{}, folders: map[string]bool{}}
	for rest := patch.Sections; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.section = &rest[0]
		done, err := p.updateTogether(ctx, rest)
		if done == 0 && err == nil {
			done, err = 1, p.apply(ctx)
		}
		if err != nil {
			return nil, err
		}
		rest = rest[done:]
	}
	return &Plan{tree: tree, patch: patch, changed: p.changes(), notes: p.notes}, nil
}

// file is a file of the tree, in the state that the sections so far leave it in.
type file struct {
	path    string      // from the root, without links in it
	before  fs.FileInfo // nil when it is not in the tree
	exists  bool        // once the sections so far are applied
	content *content
	like    fs.FileInfo // whose mode and owner it has; nil for a new file
	from    *file       // which it was moved from; its content is based on that
}

func (f *file) isLink() bool { return f.before != nil && f.before.Mode()&fs.ModeSymlink != 0 }

// planner applies sections one after the other to files in memory.
type planner struct {
	tree    Dir
	section *Section
	files   map[string]*file
	order   []*file
	folders map[string]bool // directories that new files make necessary
	loaded  int64           // bytes
	notes   []string        // of hunks that were placed
	alone   int             // how many sections are not tried together with others
}

func (p *planner) keep(f *file) *file {
	p.files[f.path] = f
	p.order = append(p.order, f)
	return f
}

func (p *planner) refuse(name, problem string, err error) error {
	return &PathError{Path: name, Line: p.section.Line, Problem: problem, Err: err}
}

// load reads a regular file.
func (p *planner) load(w *walk, name, full string, info fs.FileInfo) (*file, error) {
	if info.Size() > MaxFileSize {
		return nil, w.refuse(fmt.Sprintf("the file has %d bytes, more than the %d that a patch may change; use a command", info.Size(), MaxFileSize), nil)
	}
	if p.loaded += info.Size(); p.loaded > MaxTotalSize {
		return nil, w.refuse(fmt.Sprintf("with this file the patch changes more than %d bytes of files; use several patches, or a command", MaxTotalSize), nil)
	}
	text, err := read(w.dir(), name, info.Size())
	if err != nil {
		return nil, w.refuse(fmt.Sprintf("cannot be read: %v", err), err)
	}
	return p.keep(&file{path: full, before: info, exists: true, content: unchanged(text), like: info}), nil
}

var errGrew = errors.New("it grew while it was read")

func read(dir Dir, name string, size int64) (string, error) {
	r, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(int(size))
	n, err := io.Copy(&b, io.LimitReader(r, size+1))
	if err == nil && n > size {
		err = errGrew
	}
	return b.String(), errors.Join(err, r.Close())
}

func (p *planner) apply(ctx context.Context) error {
	switch p.section.Op {
	case Add:
		return p.add()
	case Delete:
		return p.delete()
	case Update:
		return p.update(ctx)
	}
	return p.refuse(p.section.Path, fmt.Sprintf("unknown operation %q", p.section.Op), nil)
}

func (p *planner) add() error {
	f, err := p.find(p.section.Path, true)
	if err != nil {
		return err
	}
	p.write(f, rewritten(f.ownBase(), p.section.Content), nil)
	return nil
}

// ownBase is what the tree has at the file's path.
func (f *file) ownBase() string {
	if f.before == nil {
		return ""
	}
	return f.content.base
}

func (p *planner) write(f *file, c *content, from *file) {
	f.exists, f.content, f.from = true, c, from
	for dir := path.Dir(f.path); dir != "." && !p.folders[dir]; dir = path.Dir(dir) {
		p.folders[dir] = true
	}
}

// delete removes what the path names, a link rather than what it leads to; but
// a link that leads out or to a directory is refused like any other.
func (p *planner) delete() error {
	target, err := p.find(p.section.Path, true)
	if err != nil {
		return err
	}
	f, err := p.find(p.section.Path, false)
	if err != nil {
		return err
	}
	if f == target && !f.exists {
		return p.refuse(p.section.Path, "there is no such file to delete", fs.ErrNotExist)
	}
	p.remove(f)
	return nil
}

func (p *planner) remove(f *file) {
	if p.files[f.path] == nil {
		p.keep(f)
	}
	f.exists = false
}

func (p *planner) update(ctx context.Context) error {
	s := p.section
	f, err := p.find(s.Path, true)
	if err != nil {
		return err
	}
	if !f.exists {
		return p.refuse(s.Path, `there is no such file to update; paths start in the working directory, and "`+addMarker+`path" makes a new one`, fs.ErrNotExist)
	}
	c, err := p.edited(ctx, f)
	if err != nil {
		return err
	}
	if s.MoveTo != "" {
		return p.move(f, c)
	}
	f.content = c
	return nil
}

func (p *planner) edited(ctx context.Context, f *file) (*content, error) {
	t := newText(f.content.text)
	if p.section.bare {
		t.splitBare(p.section.ending)
	}
	placed, notes, err := place(ctx, t, p.section)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		p.notes = append(p.notes, p.section.Path+": "+note)
	}
	return f.content.edited(edits(t, placed, p.section.bare)), nil
}

// move gives the content that an update made of a file to another path and
// removes what the first path names, unless both are the same.
func (p *planner) move(f *file, c *content) error {
	dest, err := p.find(p.section.MoveTo, true)
	if err != nil {
		return err
	}
	source, err := p.find(p.section.Path, false)
	if err != nil {
		return err
	}
	named, err := p.find(p.section.MoveTo, false)
	if err != nil {
		return err
	}
	switch origin := f.origin(); {
	case dest == f:
		f.content = c
	case dest.before == nil && source == f && origin != nil:
		p.write(dest, c, origin)
	default:
		p.write(dest, rewritten(dest.ownBase(), c.text), nil)
	}
	dest.like = f.like
	if source != dest && source.path != named.path {
		p.remove(source)
	}
	return nil
}

// origin is the file in the tree that the content is based on, or nil.
func (f *file) origin() *file {
	if f.before != nil {
		return f
	}
	return f.from
}
