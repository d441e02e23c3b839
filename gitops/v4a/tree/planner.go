package tree

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/agent-ci/agent-ci/gitops/charset"
	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// MaxFileSize and maxTotalSize limit the memory of a plan. A plan holds the old and new content of
// each file, and four bytes for each line during the search. Deleted and replaced files count,
// because [Plan.Diff] shows them.
const (
	MaxFileSize  = 64 << 20  // bytes of one file that a patch updates, replaces or deletes
	maxTotalSize = 256 << 20 // bytes of all these files together
)

// file is a file of the tree after the sections applied so far.
type file struct {
	path       string      // from the root, without links in it
	before     fs.FileInfo // nil if the file is not in the tree
	exists     bool        // whether it exists after the sections so far
	original   string      // content in the tree
	content    string      // content after the sections so far
	modeSource fs.FileInfo // provides mode and owner; nil for a new file
	movedFrom  *file       // the file whose content this one's is based on, or nil
}

func (f *file) isLink() bool { return f.before != nil && f.before.Mode()&fs.ModeSymlink != 0 }

// planner applies sections, one after the other, to files in memory.
type planner struct {
	tree        Dir
	section     *v4a.Section
	files       map[string]*file
	order       []*file
	folders     map[string]bool // directories that must exist for new files
	loadedBytes int64           // bytes read so far
	buffer      []byte          // for reading files
	notes       []string        // remarks for the model
}

func newPlanner(tree Dir) *planner {
	return &planner{tree: tree, files: map[string]*file{}, folders: map[string]bool{}, buffer: make([]byte, 32<<10)}
}

// addFile adds a file to the planner's files.
func (p *planner) addFile(f *file) *file {
	p.files[f.path] = f
	p.order = append(p.order, f)
	return f
}

// refuse returns a PathError about the current section.
func (p *planner) refuse(name, problem string, err error) error {
	return &PathError{Path: name, Line: p.section.Line, Problem: problem, Err: err}
}

// apply applies the current section.
func (p *planner) apply(ctx context.Context) error {
	switch p.section.Op {
	case v4a.Add:
		return p.add()
	case v4a.Delete:
		return p.delete()
	case v4a.Update:
		return p.update(ctx)
	}
	return p.refuse(p.section.Path, fmt.Sprintf("unknown operation %q", p.section.Op), nil)
}

// add writes a whole file.
func (p *planner) add() error {
	f, err := p.find(p.section.Path, followLink)
	if err != nil {
		return err
	}
	p.write(f, p.section.Content, nil)
	return nil
}

// write sets the content of a file, and notes if that replaces an existing text. from is the moved
// file, or nil.
func (p *planner) write(f *file, content string, from *file) {
	if f.exists && f.content != "" && f.content != content {
		p.notes = append(p.notes, cmp.Or(p.section.MoveTo, p.section.Path)+": there was a file, and all of it was replaced. Make sure that this is meant.")
	}
	f.exists, f.content, f.movedFrom = true, content, from
	for dir := path.Dir(f.path); dir != "." && !p.folders[dir]; dir = path.Dir(dir) {
		p.folders[dir] = true
	}
}

// delete removes the named file. If the path is a link, it removes the link. It refuses a link to a
// directory or out of the tree.
func (p *planner) delete() error {
	target, err := p.find(p.section.Path, followLink) // refuses some links
	if err != nil {
		return err
	}
	f, err := p.find(p.section.Path, linkItself)
	if err != nil {
		return err
	}
	if f == target && !f.exists {
		return p.refuse(p.section.Path, "there is no such file to delete", fs.ErrNotExist)
	}
	p.remove(f)
	return nil
}

// remove marks a file as deleted.
func (p *planner) remove(f *file) {
	if p.files[f.path] == nil {
		p.addFile(f)
	}
	f.exists, f.content = false, ""
}

// update changes a file. Then it moves the file if the section has a new path.
func (p *planner) update(ctx context.Context) error {
	name := p.section.Path
	f, err := p.find(name, followLink)
	if err != nil {
		return err
	}
	if !f.exists {
		return p.refuse(name, `there is no such file to update; paths start in the working directory, and "*** Add File: path" makes a new one`, fs.ErrNotExist)
	}
	if encoding := charset.Of(head(f.content)); encoding != "" {
		return p.refuse(name, "the file is text in "+encoding+", and patches are UTF-8; "+charset.Advice(encoding), nil)
	}
	content, notes, err := p.section.Update(ctx, f.content)
	if err != nil {
		return err
	}
	for _, note := range notes {
		p.notes = append(p.notes, name+": "+note)
	}
	if p.section.MoveTo != "" {
		return p.move(f, content)
	}
	f.content = content
	return nil
}

func head(text string) []byte { return []byte(text[:min(len(text), charset.Head)]) }

// move writes updated content to another path and removes the old one, unless both are the same
// file.
func (p *planner) move(f *file, content string) error {
	dest, err := p.find(p.section.MoveTo, followLink) // named, or the file that the link named leads to
	if err != nil {
		return err
	}
	source, err := p.find(p.section.Path, linkItself)
	if err != nil {
		return err
	}
	named, err := p.find(p.section.MoveTo, linkItself)
	if err != nil {
		return err
	}
	switch origin := f.baseFile(); {
	case dest == f: // both paths lead to the file
		f.content = content
	case dest.before == nil && source == f && origin != nil: // a rename
		p.write(dest, content, origin)
	default:
		p.write(dest, content, nil)
	}
	dest.modeSource = f.modeSource
	if source != dest && source.path != named.path {
		p.remove(source)
	}
	return nil
}

// baseFile returns the file in the tree that the content is based on, or nil.
func (f *file) baseFile() *file {
	if f.before != nil {
		return f
	}
	return f.movedFrom
}
