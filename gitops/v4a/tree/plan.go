package tree

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Plan is a planned change of a tree, based on the files when it was made.
type Plan struct {
	tree    Dir
	patch   v4a.Patch
	changed []change // sorted by path
	notes   []string
}

// NewPlan reads the files named in a patch and computes their new content. It writes nothing. Paths
// may go through symbolic links inside the tree. The time grows with the size of patch and files.
// Each section costs time for the whole file.
//
// An error is a [*PathError], a [*v4a.MatchError] or ctx's.
func NewPlan(ctx context.Context, tree Dir, patch v4a.Patch) (*Plan, error) {
	p := newPlanner(tree)
	for i := range patch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.section = &patch[i]
		if err := p.apply(ctx); err != nil {
			return nil, err
		}
	}
	return &Plan{tree: tree, patch: patch, changed: p.changes(), notes: p.notes}, nil
}

// Changes returns the changes, sorted by path.
func (p *Plan) Changes() []Change {
	changes := make([]Change, len(p.changed))
	for i := range p.changed {
		changes[i] = p.changed[i].withCounts()
	}
	return changes
}

// Summary returns the same text as Codex's tool on success. It lists paths as written in the patch:
// added files, then updated, then deleted ones. A moved file has its new path. The plan of a rewrite
// has no summary.
func (p *Plan) Summary() string {
	if len(p.patch) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Success. Updated the following files:\n")
	for _, group := range [...]struct {
		op     v4a.Op
		letter string
	}{{v4a.Add, "A "}, {v4a.Update, "M "}, {v4a.Delete, "D "}} {
		for _, s := range p.patch {
			if s.Op == group.op {
				b.WriteString(group.letter + cmp.Or(s.MoveTo, s.Path) + "\n")
			}
		}
	}
	return b.String()
}

// Notes returns remarks for the model about the patch, one per line.
func (p *Plan) Notes() string {
	var b strings.Builder
	for _, note := range p.notes {
		b.WriteString("Note: " + note + "\n")
	}
	return b.String()
}

// Change is the change of one file by all sections together. If sections cancel each other out,
// there is no Change.
type Change struct {
	Op v4a.Op `json:"op"`
	// Path is relative to the root, slash-separated, and without links.
	Path string `json:"path"`
	// MovedFrom is the old path of a moved file. Op is then Update, and the old path has no Change.
	MovedFrom string `json:"from,omitempty"`
	Added     int    `json:"added"`   // lines
	Removed   int    `json:"removed"` // lines
}

// change is a Change without its counts of lines, with the data needed to write it.
type change struct {
	Change
	file     *file
	compared *v4a.Diff // the result of diff, or nil before its first call
}

// diff returns the difference between the file's texts. It compares them at the first call, because not every caller of
// [NewPlan] needs the difference of a long file.
func (c *change) diff() v4a.Diff {
	if c.compared == nil {
		from := cmp.Or(c.file.movedFrom, c.file)
		c.compared = new(v4a.Compare(from.original, c.file.content))
	}
	return *c.compared
}

// withCounts returns the Change with its counts of lines.
func (c *change) withCounts() Change {
	counted := c.Change
	counted.Added, counted.Removed = c.diff().Added, c.diff().Removed
	return counted
}

// changes returns the changes of all files, sorted by path.
func (p *planner) changes() []change {
	moved := p.movedFiles()
	var all []change
	for _, f := range p.order {
		c, ok := f.change()
		isMoved := c.Op == v4a.Delete && moved[f] // the change of the new path says so
		if ok && !isMoved {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// movedFiles returns the files that were moved to another path. It turns a move into a new file if the
// old path is in use again, or the file was already moved elsewhere.
func (p *planner) movedFiles() map[*file]bool {
	moved := map[*file]bool{}
	for _, f := range p.order {
		switch {
		case !f.exists || f.movedFrom == nil: // no move
		case f.movedFrom.exists || moved[f.movedFrom]:
			f.movedFrom = nil
		default:
			moved[f.movedFrom] = true
		}
	}
	return moved
}

// change returns the change of a file. It returns false if the file stays as it is.
func (f *file) change() (change, bool) {
	c := change{file: f, Change: Change{Path: f.path, Op: v4a.Update}}
	switch {
	case f.before == nil && !f.exists:
		return c, false
	case !f.exists:
		c.Op = v4a.Delete
	case f.movedFrom != nil:
		c.MovedFrom = f.movedFrom.path
	case f.before == nil:
		c.Op = v4a.Add
	case !f.isLink() && f.content == f.original && f.modeBefore() == f.modeAfter():
		return c, false
	}
	return c, true
}

func (f *file) modeBefore() fs.FileMode { return f.before.Mode() & keptMode }

// modeAfter returns the mode of the file after the patch: that of modeSource, or 0644 without one.
func (f *file) modeAfter() fs.FileMode {
	if f.modeSource == nil {
		return 0o644
	}
	return f.modeSource.Mode() & keptMode
}
