package report

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// filesBytes bounds the diffs of the change on the page.
const filesBytes = 600_000

// openLines is up to how many lines of them are shown unfolded.
const openLines = 200

// changed is a changed file with its diff.
type changed struct {
	changeset.File
	N     int // its place in the list, from 1
	Hunks []hunk
	Open  bool
}

// changed draws the diffs of changed files within the limit, and records their places.
func (o *overview) changed() g.Node {
	if o.View.Change == nil || !sections.Begun(o.View) {
		return nil
	}
	hunksOf := unified(o.View.Change.Diff)
	builder := diffBuilder{left: filesBytes}
	var all g.Group
	for i, f := range o.View.Change.Files[:min(len(o.View.Change.Files), maxRows)] {
		one := changed{File: f, N: i + 1}
		for _, h := range hunksOf[f.Path] {
			if builder.left > 0 {
				one.Hunks = append(one.Hunks, builder.hunk(h))
			}
		}
		if one.Open = builder.lines <= openLines; len(one.Hunks) > 0 {
			o.Diffs[f.Path] = one.id()
			all = append(all, one.diff())
		}
	}
	return append(all, cutNote(o.undiffed()))
}

// undiffed describes changes without a shown diff, or returns "".
func (o *overview) undiffed() string {
	c := o.View.Change
	if c == nil || !c.DiffCut && c.Diff != "" {
		return ""
	}
	if len(c.Files) == 0 || c.Patch == "" {
		return ""
	}
	if c.Diff == "" {
		return fmt.Sprintf("The transcript has no diff of this change; the run directory has it as %s.", c.Patch)
	}
	return fmt.Sprintf("The change is longer than what is shown here; all of it is %s in the run directory.", c.Patch)
}

func (f changed) id() string { return fmt.Sprintf("f%d", f.N) }

func (f changed) diff() g.Node {
	return h.Details(
		h.Class("file"), h.ID(f.id()), g.If(f.Open, g.Attr("open")),
		h.Summary(code(fileField(f.Path)), g.Text(" "), labelled("end", sections.FileState(f.File))),
		h.Div(h.Class("diff"), hunkList(f.Hunks)),
	)
}
