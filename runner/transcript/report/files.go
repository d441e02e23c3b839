package report

import (
	"cmp"
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

func (o *overview) filesSection() g.Node {
	if !o.begun() {
		return nil
	}
	files := o.files()
	if len(files) == 0 {
		return section("files", "Files", sentence("No file was changed."))
	}
	return section("files", "Files",
		sentence(o.View.Change.Size()),
		table([]string{"File", "What", "Lines", "Patches"}, g.Map(files, func(f changed) g.Node { return f.node(o.Patches[f.Path]) })),
		sentence(moreRows("file", len(o.View.Change.Files))),
		g.Map(files, changed.diff),
		cutNote(o.undiffed()),
	)
}

// filesBytes is what the diffs of the change may take on the page, in bytes.
const filesBytes = 600_000

// openLines is up to how many lines of them are shown unfolded.
const openLines = 200

// changed is a file of the change with its diff.
type changed struct {
	transcript.ChangeFile
	N     int // its place in the list, from 1
	Hunks []hunk
	Open  bool
}

// files are those of the change, each with as much of its diff as there is.
func (o *overview) files() []changed {
	if o.View.Change == nil {
		return nil
	}
	diffs := unified(o.View.Change.Diff)
	builder := diffBuilder{left: filesBytes}
	var all []changed
	for i, f := range shownOf(o.View.Change.Files) {
		one := changed{ChangeFile: f, N: i + 1}
		for _, h := range diffs[f.Path] {
			if builder.left > 0 {
				one.Hunks = append(one.Hunks, builder.hunk(h))
			}
		}
		one.Open = builder.lines <= openLines
		all = append(all, one)
	}
	return all
}

// undiffed says what of the change no diff is shown of; empty for nothing.
func (o *overview) undiffed() string {
	c := o.View.Change
	if c == nil || !c.DiffCut && c.Diff != "" {
		return ""
	}
	if len(c.Files) == 0 || c.Patch == "" {
		return ""
	}
	if c.Diff == "" {
		return fmt.Sprintf("The transcript has no diff of this change; the run directory has it as %s.", field(c.Patch))
	}
	return fmt.Sprintf("The change is longer than what is shown here; all of it is %s in the run directory.", field(c.Patch))
}

func (f changed) id() string   { return fmt.Sprintf("f%d", f.N) }
func (f changed) path() g.Node { return code(field(markdown.FileName(f.Path))) }

var statusName = map[string]string{"A": "added", "M": "changed", "D": "deleted", "T": "type changed"}

func (f changed) status() string { return cmp.Or(statusName[f.Status], field(f.Status)) }

// node is the row of the file. patches are the events of calls that named it in a patch.
func (f changed) node(patches []int64) g.Node {
	path := f.path()
	if len(f.Hunks) > 0 {
		path = h.A(h.Href("#"+f.id()), path)
	}
	plus, minus := "+"+transcript.Thousands(int64(f.Insertions)), "−"+transcript.Thousands(int64(f.Deletions))
	if f.Binary {
		plus, minus = "binary", ""
	}
	calls := g.Map(patches, func(seq int64) g.Node { return g.Group{eventLink(seq), g.Text(" ")} })
	if len(calls) == 0 {
		calls = g.Group{g.Text("–")}
	}
	return row(path,
		cell("What", g.Text(f.status())),
		cell("Lines", h.Span(h.Class("plus"), g.Text(plus)), g.Text(" "), h.Span(h.Class("minus"), g.Text(minus))),
		cell("Patches", calls),
	)
}

func (f changed) diff() g.Node {
	if len(f.Hunks) == 0 {
		return nil
	}
	return h.Details(
		h.Class("file"), h.ID(f.id()), g.If(f.Open, g.Attr("open")),
		h.Summary(f.path(), g.Text(" "), h.Span(h.Class("end"), g.Text(f.status()))),
		h.Div(h.Class("diff"), hunkList(f.Hunks)),
	)
}
