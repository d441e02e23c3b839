package show

import (
	"cmp"
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/campaign"
)

func (s sheet) targets() g.Node {
	return h.Section(
		h.ID("targets"), h.Aria("labelledby", "targets-h"),
		h.H2(h.ID("targets-h"), g.Text("Targets")),
		s.tools(),
		h.Table(
			h.Class("stack"), h.ID("rows"),
			columns("Target", "State", "Pull request", "Runs", "Dollars", "Since (UTC)", "Why"),
			h.TBody(g.Map(s.Rows, pageRow.node)),
		),
	)
}

func columns(names ...string) g.Node {
	return h.THead(h.Tr(g.Map(names, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) })))
}

// tools are hidden until the script shows them.
func (s sheet) tools() g.Node {
	return h.Div(
		h.Class("tools"), h.Role("search"), h.Aria("label", "Targets"), h.ID("tools"), g.Attr("hidden"),
		h.Label(
			h.Class("find"), h.Span(g.Text("Search")), g.Text(" "),
			h.Input(h.Type("search"), h.ID("search"), h.AutoComplete("off"), g.Attr("spellcheck", "false"), h.Aria("describedby", "found"), h.Placeholder("words of a row")),
		),
		h.Label(
			h.Class("check"), g.Text("State "),
			h.Select(h.ID("state"), h.Option(h.Value(""), g.Text("all")), g.Map(s.Counts, func(c count) g.Node { return h.Option(g.Text(c.Words)) })),
		),
		h.P(h.ID("found"), h.Role("status"), g.Text(thousands(s.Total)+" targets")),
	)
}

// pageRow is a target. Numbers are apart from their words, for sorting.
type pageRow struct {
	Name, Words, Tone, Link, Why string
	Pull, Attempts               int
	Cost, Since                  string
	CostUSD                      float64
	SinceUnix                    int64
}

func newPageRow(server string, r campaign.Row) pageRow {
	row := pageRow{
		Name: field(name(r), 300), Words: words[r.Class], Tone: tones[r.Class], Link: pullLink(server, r), Why: field(why(r), 600), Attempts: r.Attempts,
	}
	if r.Pull != nil {
		row.Pull = r.Pull.Number
	}
	if r.Report != nil && r.Report.CostUSD != nil {
		row.CostUSD = *r.Report.CostUSD
		row.Cost = fmt.Sprintf("%.2f", row.CostUSD)
	}
	if r.Since != nil {
		row.Since, row.SinceUnix = clock(*r.Since), r.Since.Unix()
	}
	return row
}

func (r pageRow) node() g.Node {
	state := g.Text(r.Words)
	if r.Tone != "" {
		state = h.Span(h.Class("badge word "+r.Tone), state)
	}
	pull := g.Text("–")
	switch number := fmt.Sprintf("#%d", r.Pull); {
	case r.Link != "":
		pull = h.A(h.Href(r.Link), g.Text(number))
	case r.Pull != 0:
		pull = g.Text(number)
	}
	return g.Group{
		h.Tr(
			h.Th(h.Scope("row"), g.El("bdi", g.Text(r.Name))),
			pageCell("State", nil, state),
			pageCell("Pull request", r.Pull, pull),
			pageCell("Runs", r.Attempts, g.Text(fmt.Sprint(r.Attempts))),
			pageCell("Dollars", r.CostUSD, g.Text(cmp.Or(r.Cost, "–"))),
			pageCell("Since", r.SinceUnix, g.Text(cmp.Or(r.Since, "–"))),
			pageCell("Why", nil, g.El("bdi", g.Text(cmp.Or(r.Why, "–")))),
		),
		g.Text("\n"),
	}
}

// pageCell is sorted by that number; nil for its words.
func pageCell(column string, sort any, content g.Node) g.Node {
	var by g.Node
	if sort != nil {
		by = h.Data("sort", fmt.Sprint(sort))
	}
	return h.Td(h.Data("name", column), by, content)
}
