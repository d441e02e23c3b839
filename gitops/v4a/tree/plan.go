package tree

import (
	"cmp"
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Plan is what a patch changes in a tree, ready to be written. It refers to the
// tree as it was when the plan was made.
type Plan struct {
	tree    Dir
	patch   *v4a.Patch
	changed []change // sorted by path
	notes   []string
}

// NewPlan reads the files that a patch names and computes what becomes of them;
// it writes nothing. A path that leads through symbolic links stands for where
// they lead, which must be inside the tree. The time that it takes grows with
// the size of the patch and of the files; with that of a file for each of its
// sections when they cannot be told to be independent of each other.
//
// An error is a [*PathError], a [*v4a.MatchError] or that of ctx.
func NewPlan(ctx context.Context, tree Dir, patch *v4a.Patch) (*Plan, error) {
	p := &planner{tree: tree, files: map[string]*file{}, folders: map[string]bool{}}
	for rest := patch.Sections; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.section = &rest[0]
		done := sameUpdates(rest)
		if err := p.apply(ctx, rest[:done]); err != nil {
			return nil, err
		}
		rest = rest[done:]
	}
	return &Plan{tree: tree, patch: patch, changed: p.changes(), notes: p.notes}, nil
}

// sameUpdates counts the first sections as far as they only update one file. It
// counts the first one in any case.
func sameUpdates(sections []v4a.Section) int {
	n := 0
	for _, s := range sections {
		if s.Op != v4a.Update || s.MoveTo != "" || s.Path != sections[0].Path {
			break
		}
		n++
	}
	return max(n, 1)
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
		op     v4a.Op
		letter string
	}{{v4a.Add, "A "}, {v4a.Update, "M "}, {v4a.Delete, "D "}} {
		for _, s := range p.patch.Sections {
			if s.Op == group.op {
				b.WriteString(group.letter + cmp.Or(s.MoveTo, s.Path) + "\n")
			}
		}
	}
	return b.String()
}

// mostNotes is how many hunks are told of.
const mostNotes = 10

// Notes tell who wrote the patch what to look at although it was applied, a line
// each; they are empty when there is nothing.
func (p *Plan) Notes() string {
	var b strings.Builder
	for _, note := range p.notes[:min(len(p.notes), mostNotes)] {
		b.WriteString("Note: " + note + "\n")
	}
	return b.String()
}
