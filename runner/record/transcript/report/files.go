package report

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// filesBytes limits the diffs of the change on the page, in bytes.
const filesBytes = 600_000

// openLines is up to how many lines of these diffs are unfolded at first.
const openLines = 200

// fileDiffs draws the diffs of the changed files, up to filesBytes, and records their ids.
func (o *overview) fileDiffs() g.Node {
	if o.View.Change == nil || !sections.AgentBegan(o.View) {
		return nil
	}
	hunksOf := parseUnified(o.View.Change.Diff)
	drawer := diffDrawer{remaining: filesBytes}
	var all g.Group
	for i, f := range o.View.Change.Files[:min(len(o.View.Change.Files), maxRows)] {
		hunks := drawer.hunks(hunksOf[f.Path])
		if len(hunks) == 0 {
			continue
		}
		id := fmt.Sprintf("f%d", i+1)
		o.Diffs[f.Path] = id
		all = append(all, h.Details(
			h.Class("file"), h.ID(id), g.If(drawer.lines <= openLines, g.Attr("open")),
			h.Summary(codeNode(fileField(f.Path)), g.Text(" "), labelled("end", sections.FileState(f))),
			h.Div(h.Class("diff"), hunks),
		))
	}
	return append(all, cutNote(o.describeMissingDiff()))
}

// describeMissingDiff returns a sentence about changes whose diff is not shown, or "".
func (o *overview) describeMissingDiff() string {
	c := o.View.Change
	isShown := c.Diff != "" && !c.DiffCut
	switch {
	case isShown || len(c.Files) == 0 || c.Patch == "":
		return ""
	case c.Diff == "":
		return fmt.Sprintf("The transcript has no diff of this change; the run directory has it as %s.", c.Patch)
	}
	return fmt.Sprintf("The change is longer than what is shown here; all of it is %s in the run directory.", c.Patch)
}
