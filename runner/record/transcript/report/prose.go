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

// messageNodes draws the blocks of a message. Lines without a gap between them form one paragraph. Code
// begins with a newline, which HTML ignores.
func messageNodes(all []markdown.Block) (nodes g.Group) {
	for i := 0; i < len(all); {
		b := all[i]
		text := g.Group{spans(b.Text)}
		for i++; i < len(all) && continues(b, all[i]); i++ {
			text = append(text, g.Text("\n"), spans(all[i].Text))
		}
		switch b.Kind {
		case markdown.CodeBlock:
			nodes = append(nodes, h.Pre(g.Text("\n"+b.CodeText())))
		case markdown.Heading:
			nodes = append(nodes, h.P(h.Class("h"), text))
		case markdown.Item:
			mark := b.Mark
			if mark == "-" {
				mark = "•"
			}
			nodes = append(nodes, h.P(h.Class(fmt.Sprintf("li d%d", b.Level)), g.Text(mark+" "), text))
		default:
			nodes = append(nodes, h.P(text))
		}
	}
	return nodes
}

// continues reports whether next belongs to the paragraph or item that b begins.
func continues(b, next markdown.Block) bool {
	return next.Kind == markdown.ItemLine || b.Kind == markdown.ParagraphLine && next.Kind == b.Kind && !next.Gap
}

func spans(t document.Text) g.Node {
	return g.Map(t, func(s document.Span) g.Node { return styled(s, s.Text) })
}
