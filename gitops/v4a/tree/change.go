package tree

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Change is what a plan does to one file of the tree, all sections taken
// together. Sections that undo each other leave none.
type Change struct {
	// Path is where the file is, relative to the root and slash-separated. No
	// element of it is a link, whatever the patch named the file by.
	Path string
	Op   v4a.Op
	// MovedFrom is the path that a moved file had and does not have any more;
	// there is no other Change for it. Op is Update then.
	MovedFrom string
	Added     int // lines
	Removed   int // lines
}

// change is a Change with all that is needed to write it.
type change struct {
	Change
	file *file
	diff v4a.Diff
}

// changes compares the files with the tree.
func (p *planner) changes() []change {
	moved := p.moved()
	var all []change
	for _, f := range p.order {
		if c, ok := f.change(); ok && !(c.Op == v4a.Delete && moved[f]) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// moved returns the files that moved away. One whose path has a file again, or
// that has moved to another place already, counts as copied.
func (p *planner) moved() map[*file]bool {
	moved := map[*file]bool{}
	for _, f := range p.order {
		switch {
		case !f.exists || f.from == nil:
		case f.from.exists || moved[f.from]:
			f.from, f.content = nil, f.rewritten(f.content.Text())
		default:
			moved[f.from] = true
		}
	}
	return moved
}

func (f *file) change() (change, bool) {
	c := change{file: f, Change: Change{Path: f.path, Op: v4a.Update}}
	switch {
	case f.before == nil && !f.exists:
		return c, false
	case !f.exists:
		c.Op = v4a.Delete
	case f.from != nil:
		c.MovedFrom = f.from.path
	case f.before == nil:
		c.Op = v4a.Add
	case !f.isLink() && !f.content.Changed() && f.modeBefore() == f.modeAfter():
		return c, false
	}
	c.diff = f.content.Diff()
	c.Added, c.Removed = c.diff.Added, c.diff.Removed
	return c, true
}

func (f *file) modeBefore() fs.FileMode { return f.before.Mode() & keptMode }

func (f *file) modeAfter() fs.FileMode {
	if f.like == nil {
		return 0o644
	}
	return f.like.Mode() & keptMode
}
