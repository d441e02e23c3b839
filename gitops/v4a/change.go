package v4a

import (
	"io/fs"
	"slices"
	"strings"
)

// Change is what a plan does to one file of the tree, all sections taken
// together. Sections that undo each other leave none.
type Change struct {
	// Path is where the file is, relative to the root and slash-separated. No
	// element of it is a link, whatever the patch named the file by.
	Path string
	Op   Op
	// MovedFrom is the path that a moved file had and does not have any more;
	// there is no other Change for it. Op is Update then.
	MovedFrom string
	Added     int // lines
	Removed   int // lines
}

// Changes returns what the plan changes, sorted by path.
func (p *Plan) Changes() []Change {
	changes := make([]Change, len(p.changed))
	for i, c := range p.changed {
		changes[i] = c.Change
	}
	return changes
}

// Summary is what Codex's own tool prints on success: the paths as the patch
// spells them, those of added files first, then updated, then deleted ones. A
// moved file goes by its new path.
func (p *Plan) Summary() string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:\n")
	for _, group := range [...]struct {
		op     Op
		letter string
	}{{Add, "A "}, {Update, "M "}, {Delete, "D "}} {
		for _, s := range p.patch.Sections {
			if s.Op == group.op {
				b.WriteString(group.letter + s.result() + "\n")
			}
		}
	}
	return b.String()
}

func (s *Section) result() string {
	if s.MoveTo != "" {
		return s.MoveTo
	}
	return s.Path
}

// Paths returns the paths that a patch names, in its order and spelling, each
// one once. Where links lead is known to a [Plan] only: see [Plan.Changes].
func Paths(p *Patch) []string {
	var paths []string
	for _, s := range p.Sections {
		paths = append(paths, s.Path)
		if s.MoveTo != "" {
			paths = append(paths, s.MoveTo)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(paths, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// change is a Change with all that is needed to write it.
type change struct {
	Change
	file  *file
	lines []lineRange // what differs between base and text
}

// changes compares the files with the tree.
func (p *planner) changes() []change {
	moved := p.moved()
	var all []change
	for _, f := range p.order {
		if c, ok := f.change(); ok && !(c.Op == Delete && moved[f]) {
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
			f.from, f.content = nil, rewritten("", f.content.text)
		default:
			moved[f.from] = true
		}
	}
	return moved
}

func (f *file) change() (change, bool) {
	c := change{file: f, Change: Change{Path: f.path, Op: Update}}
	switch {
	case f.before == nil && !f.exists:
		return c, false
	case !f.exists:
		c.Op = Delete
	case f.from != nil:
		c.MovedFrom = f.from.path
	case f.before == nil:
		c.Op = Add
	case !f.isLink() && f.content.text == f.content.base && f.modeBefore() == f.modeAfter():
		return c, false
	}
	c.lines = f.differing()
	for _, r := range c.lines {
		c.Removed += countLines(f.content.base[r.oldFrom:r.oldTo])
		c.Added += countLines(f.after()[r.newFrom:r.newTo])
	}
	return c, true
}

// after is the text that the file will have.
func (f *file) after() string {
	if !f.exists {
		return ""
	}
	return f.content.text
}

func (f *file) modeBefore() fs.FileMode { return f.before.Mode() & keptMode }

func (f *file) modeAfter() fs.FileMode {
	if f.like == nil {
		return 0o644
	}
	return f.like.Mode() & keptMode
}
