package show

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/report"
)

var (
	//go:embed style.css
	ownStyle string
	//go:embed script.js
	script string
)

// Page writes the status as a page in HTML, which loads nothing.
func Page(w io.Writer, status campaign.Status) error {
	s := newSheet(status)
	page := h.Doctype(h.HTML(
		h.Lang("en"),
		report.Head(field(s.Campaign, 100)+" · agent-ci campaign", report.Style()+ownStyle, script),
		h.Body(
			h.A(h.Class("skip"), h.Href("#targets"), g.Text("Skip to the targets")),
			s.header(),
			h.Main(s.costs(), s.targets()),
			s.footer(),
			h.Script(g.Raw(script)),
		),
	))
	if err := page.Render(w); err != nil {
		return fmt.Errorf("write the page of the campaign: %w", err)
	}
	return nil
}

func (s *sheet) header() g.Node {
	return h.Header(
		h.P(h.Class("brand"), g.Text("agent-ci campaign")),
		h.H1(g.Text(field(s.Campaign, 100))),
		h.P(h.Class("ending"), g.Text(thousands(s.Settled)+" of "+thousands(s.Total)+" targets settled")),
		g.If(s.Total > 0, h.Progress(h.Aria("label", "Targets that are settled"), h.Max(strconv.Itoa(s.Total)), h.Value(strconv.Itoa(s.Settled)))),
		h.Dl(h.Class("figures"), g.Map(s.Counts, func(c count) g.Node {
			return h.Div(h.Dt(g.Text(c.Words)), h.Dd(g.Text(thousands(c.Targets))))
		})),
		g.If(s.Wait != "", h.Ul(h.Class("notices"), h.Aria("label", "Notices"), h.Li(g.Text(field(s.Wait, 1000))))),
	)
}

func (s *sheet) costs() g.Node {
	return h.Section(
		h.Aria("labelledby", "costs-h"),
		h.H2(h.ID("costs-h"), g.Text("Costs")),
		g.Map(s.Lines, func(line string) g.Node { return h.P(h.Class("source"), g.Text(field(line, 1000))) }),
	)
}

// columns are those of the table of targets.
var columns = []string{"Target", "State", "Pull request", "Runs", "Dollars", "Since (UTC)", "Note"}

func (s *sheet) targets() g.Node {
	return h.Section(
		h.ID("targets"), h.Aria("labelledby", "targets-h"),
		h.H2(h.ID("targets-h"), g.Text("Targets")),
		h.Div(
			h.Class("tools"), h.Role("search"), h.Aria("label", "Targets"), h.ID("tools"), g.Attr("hidden"),
			h.Label(
				h.Class("find"), h.Span(g.Text("Search")), g.Text(" "),
				h.Input(h.Type("search"), h.ID("search"), h.AutoComplete("off"), g.Attr("spellcheck", "false"), h.Aria("describedby", "found"), h.Placeholder("words of a row")),
			),
			h.Label(h.Class("check"), g.Text("State "), h.Select(
				h.ID("state"), h.Option(h.Value(""), g.Text("all")),
				g.Map(s.Counts, func(c count) g.Node { return h.Option(g.Text(c.Words)) }),
			)),
			h.P(h.ID("found"), h.Role("status"), g.Text(thousands(s.Total)+" targets")),
		),
		h.Table(
			h.Class("stack"), h.ID("rows"),
			h.THead(h.Tr(g.Map(columns, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) }))),
			h.TBody(g.Map(s.Rows, row.node)),
		),
	)
}

func (r row) node() g.Node {
	state := g.Text(r.Words)
	if r.Tone != "" {
		state = h.Span(h.Class("badge word "+r.Tone), g.Text(r.Words))
	}
	pull := g.Text("–")
	if r.Pull > 0 {
		pull = g.Text("#" + strconv.Itoa(r.Pull))
	}
	if r.Link != "" {
		pull = h.A(h.Href(r.Link), pull)
	}
	return h.Tr(
		h.Th(h.Scope("row"), g.El("bdi", g.Text(field(r.Name, 300)))),
		cell("State", "", state),
		cell("Pull request", strconv.Itoa(r.Pull), pull),
		cell("Runs", strconv.Itoa(r.Attempts), g.Text(strconv.Itoa(r.Attempts))),
		cell("Dollars", strconv.FormatFloat(r.Sort.Cost, 'g', -1, 64), g.Text(cmp.Or(r.Cost, "–"))),
		cell("Since", strconv.FormatInt(r.Sort.Since, 10), g.Text(cmp.Or(r.Since, "–"))),
		cell("Note", "", g.El("bdi", g.Text(cmp.Or(field(r.Note, 600), "–")))),
	)
}

// cell is one of a row. By sort the rows are put in order; empty stands for the text.
func cell(name, sort string, content g.Node) g.Node {
	return h.Td(h.Data("name", name), g.If(sort != "", h.Data("sort", sort)), content)
}

func (s *sheet) footer() g.Node {
	return h.Footer(h.P(g.Map(s.Digests, func(d digest) g.Node {
		return g.If(d.Value != "", g.Group{g.Text(d.Name + " "), h.Code(g.Text(d.Value)), g.Text(" ")})
	})))
}

func thousands(n int) string { return transcript.Thousands(int64(n)) }
