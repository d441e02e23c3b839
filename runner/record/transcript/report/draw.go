package report

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// maxRows limits the rows of a list or table, and sentenceUnits a few sentences, in UTF-16 units.
// overviewBytes limits a message, and tailBytes a command's output.
const (
	maxRows       = 200
	sentenceUnits = 2_000
	overviewBytes = 12_000
	tailBytes     = 40_000
)

// tones has the CSS class of a tone, signs the sign of a result.
var (
	tones = map[document.Tone]string{document.Good: "good", document.Doubtful: "open", document.Bad: "bad"}
	signs = map[document.Tone]string{document.Good: "✓ ", document.Bad: "✗ "}
)

// draw draws sections in order. A section without a title continues the one before it.
func draw(all []document.Section) (nodes g.Group) {
	for len(all) > 0 {
		first := all[0]
		content := g.Group{Blocks(first.Blocks...)}
		all = all[1:]
		for len(all) > 0 && all[0].Title == "" {
			content = append(content, Blocks(all[0].Blocks...))
			all = all[1:]
		}
		nodes = append(nodes, Section(first.ID, first.Title, content...))
	}
	return nodes
}

// Section draws a section. The table of contents may link to its id.
func Section(id, heading string, content ...g.Node) g.Node {
	heads := id + "-h"
	return g.Group{h.Section(h.ID(id), h.Aria("labelledby", heads), h.H2(h.ID(heads), g.Text(heading)), g.Group(content)), g.Text("\n")}
}

// Blocks draws blocks.
func Blocks(blocks ...document.Block) g.Node { return g.Map(blocks, drawBlock) }

// Figures draws facts side by side.
func Figures(all document.Facts) g.Node { return facts("figures", all) }

// Line draws a text on one line.
func Line(t document.Text) g.Node { return g.Map(t, drawSpan) }

// drawBlock draws a block. It returns nil for an unknown kind.
func drawBlock(b document.Block) g.Node {
	switch b := b.(type) {
	case g.Node: // of this package
		return b
	case document.Paragraph:
		return h.P(Line(b.Text))
	case document.Message:
		return h.Div(h.Class("prose"), prose(proseWeights.cut(fixedLimit(overviewBytes), b.Text)))
	case document.Quote:
		return h.Div(h.Class("prose quote"), prose(proseWeights.cut(fixedLimit(overviewBytes), string(b))))
	case document.Code:
		return h.Pre(h.TabIndex("0"), g.Text("\n"+shownText(string(b), tailBytes)))
	case document.List:
		return g.Group{list(b), moreRows(b.Noun, len(b.Items), 0)}
	case document.Table:
		return g.Group{table(b), moreRows(b.Noun, len(b.Rows), b.MaxRows)}
	case document.Facts:
		return facts("facts", b)
	case document.Folds:
		return g.Map(b.Folds[:min(len(b.Folds), maxRows)], fold)
	case document.Alert:
		class := "notices"
		if b.Severe {
			class = "notices severe"
		}
		return h.Ul(h.Class(class), h.Aria("label", "Notices"), g.Map(b.Items, func(t document.Text) g.Node { return h.Li(Line(t)) }))
	}
	return nil
}

var boxes = map[document.Box]struct{ sign, state string }{document.Open: {"○", "not done"}, document.InProgress: {"◐", "in progress"}, document.Done: {"✓", "done"}}

// list draws a list. If the first item has a box, the list is a plan.
func list(l document.List) g.Node {
	items := l.Items[:min(len(l.Items), maxRows)]
	if len(items) > 0 && items[0].Box != document.NoBox {
		return h.Ol(h.Class("plan"), g.Map(items, func(i document.Item) g.Node {
			box := boxes[i.Box]
			return h.Li(
				h.Span(h.Class("sign"), h.Aria("hidden", "true"), g.Text(box.sign)), g.Text(" "), Line(i.Text), g.Text(" "),
				h.Span(h.Class("state"), g.Text(box.state)),
			)
		}))
	}
	return h.Ul(g.Map(items, func(i document.Item) g.Node { return h.Li(Line(i.Text)) }))
}

// table draws a table, up to t.MaxRows rows, but at least maxRows. The first cell of a row is its heading. On a narrow page,
// rows become stacks of named cells.
func table(t document.Table) g.Node {
	heads := g.Map(t.Columns, func(c document.Column) g.Node { return h.Th(h.Scope("col"), g.Text(c.Name)) })
	shown := t.Rows[:min(len(t.Rows), max(maxRows, t.MaxRows))]
	return h.Table(h.Class("stack"), h.THead(h.Tr(heads)), h.TBody(g.Map(shown, func(cells document.Row) g.Node {
		row := g.Group{h.Th(h.Scope("row"), Line(cells[0]))}
		for i, cell := range cells[1:] {
			if len(cell) == 0 {
				cell = document.Words("–")
			}
			row = append(row, h.Td(h.Data("name", t.Columns[i+1].Name), Line(cell)))
		}
		return g.Group{h.Tr(row), g.Text("\n")}
	})))
}

// facts draws facts as a definition list with a CSS class.
func facts(class string, all document.Facts) g.Node {
	return h.Dl(h.Class(class), g.Map(all, func(f document.Fact) g.Node {
		return h.Div(h.Dt(g.Text(Field(f.Name))), h.Dd(Line(f.Value)))
	}))
}

// fold draws a fold, which may be unfolded at first.
func fold(f document.Fold) g.Node {
	return h.Details(g.If(f.Open, g.Attr("open")), g.If(f.ID != "", h.ID(f.ID)), h.Summary(Line(f.Title)), Blocks(f.Blocks...))
}

// drawSpan draws a span, with its link.
func drawSpan(s document.Span) g.Node {
	maxUnits := fieldUnits
	if s.IsSentence {
		maxUnits = sentenceUnits
	}
	node := styled(s, markdown.Show(markdown.Cut(s.Text, maxUnits)))
	switch {
	case s.Link != "":
		return h.A(h.Href(s.Link), h.Rel("noopener noreferrer"), node)
	case s.PageAnchor != "":
		return h.A(h.Href("#"+s.PageAnchor), node)
	}
	return node
}

// styled draws a text in the style of a span.
func styled(s document.Span, text string) g.Node {
	switch {
	case s.Style == document.Monospace:
		return codeNode(text)
	case s.Style == document.Strong:
		return h.B(g.Text(text))
	case s.Style == document.Result:
		return h.Span(h.Class("badge word "+tones[max(s.Tone, document.Good)]), g.Text(signs[s.Tone]+text))
	case s.Style == document.State && s.Tone != document.Neutral:
		return h.Span(h.Class("badge word "+tones[s.Tone]), g.Text(text))
	}
	return g.Text(text)
}

// codeNode draws a text as code.
func codeNode(text string) g.Node { return h.Code(g.Text(text)) }

// cutNote draws a note about left-out text. It returns nil for "".
func cutNote(text string) g.Node {
	if text == "" {
		return nil
	}
	return h.P(h.Class("cut"), g.Text(shownText(text, sentenceUnits)))
}

// moreRows draws how many of total rows are left out, or returns nil if all are shown. A table shows shown
// rows, but at least maxRows.
func moreRows(noun string, total, shown int) g.Node {
	shown = max(shown, maxRows)
	if total <= shown {
		return nil
	}
	return h.P(g.Text("… and " + transcript.CountNoun(total-shown, "more "+noun) + "."))
}
