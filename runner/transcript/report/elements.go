package report

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// section is a part of the page that the list of sections may lead to.
func section(id, heading string, content ...g.Node) g.Node {
	heads := id + "-h"
	return g.Group{h.Section(h.ID(id), h.Aria("labelledby", heads), h.H2(h.ID(heads), g.Text(heading)), g.Group(content)), g.Text("\n")}
}

// table is a table whose rows are stacks of named cells where the page is narrow. The
// columns are named as the cells are.
func table(columns []string, rows g.Group) g.Node {
	names := g.Map(columns, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) })
	return h.Table(h.Class("stack"), h.THead(h.Tr(names)), h.TBody(rows))
}

// row is a line of a table; its head says what it is about.
func row(head g.Node, cells ...g.Node) g.Node {
	return g.Group{h.Tr(h.Th(h.Scope("row"), head), g.Group(cells)), g.Text("\n")}
}

func cell(column string, content ...g.Node) g.Node {
	return h.Td(h.Data("name", column), g.Group(content))
}

func code(text string) g.Node { return h.Code(g.Text(text)) }

// sentence is a paragraph; nothing for no text.
func sentence(text string) g.Node {
	if text == "" {
		return nil
	}
	return h.P(g.Text(text))
}

// cutNote tells of what is not shown; nothing for no text.
func cutNote(text string) g.Node {
	if text == "" {
		return nil
	}
	return h.P(h.Class("cut"), g.Text(text))
}

// behind is a blank and a text behind another; nothing for no text.
func behind(text string) g.Node {
	if text == "" {
		return nil
	}
	return g.Text(" " + text)
}

// within is a link to another place of the page.
func within(id, text string) g.Node { return h.A(h.Href("#"+id), g.Text(text)) }

// eventID is the place of an event in the timeline.
func eventID(seq int64) string { return fmt.Sprintf("e%d", seq) }

// eventLink leads to an event.
func eventLink(seq int64) g.Node { return within(eventID(seq), fmt.Sprintf("#%d", seq)) }
