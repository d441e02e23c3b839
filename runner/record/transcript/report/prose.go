package report

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// prose draws the message of a model. Its middle may be left out.
func prose(e excerpt) g.Node {
	nodes := g.Group{messageNodes(markdown.Parse(e.Head))}
	if e.Hidden != "" {
		nodes = append(nodes, cutNote("… "+e.Hidden+" …"), messageNodes(markdown.Parse(e.Tail)))
	}
	return nodes
}

// messageNodes draws the blocks of a message. Lines without a gap between them form one paragraph.
func messageNodes(all []markdown.Block) (nodes g.Group) {
	for len(all) > 0 {
		lines := 1
		for lines < len(all) && continuesBlock(all[0], all[lines]) {
			lines++
		}
		nodes = append(nodes, paragraphNode(all[:lines]))
		all = all[lines:]
	}
	return nodes
}

// paragraphNode draws the lines of a paragraph, item, heading or code block. HTML ignores the newline at the
// start of code.
func paragraphNode(lines []markdown.Block) g.Node {
	first := lines[0]
	text := g.Group{drawSpans(first.Text)}
	for _, line := range lines[1:] {
		text = append(text, g.Text("\n"), drawSpans(line.Text))
	}
	switch first.Kind {
	case markdown.CodeBlock:
		return h.Pre(g.Text("\n" + first.CodeText()))
	case markdown.Heading:
		return h.P(h.Class("h"), text)
	case markdown.Item:
		mark := first.Mark
		if mark == "-" {
			mark = "•"
		}
		return h.P(h.Class(fmt.Sprintf("li d%d", first.Level)), g.Text(mark+" "), text)
	}
	return h.P(text)
}

// continuesBlock reports whether next belongs to the paragraph or item that b begins.
func continuesBlock(b, next markdown.Block) bool {
	bothLines := b.Kind == markdown.ParagraphLine && next.Kind == markdown.ParagraphLine
	return next.Kind == markdown.ItemLine || bothLines && !next.Gap
}

// drawSpans draws the spans of a message, without their links.
func drawSpans(t document.Text) g.Node {
	return g.Map(t, func(s document.Span) g.Node { return styled(s, s.Text) })
}
