package show

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/report"
)

var (
	//go:embed style.css
	ownStyle string
	//go:embed script.js
	script string
)

// Page writes the status as a self-contained HTML page.
func Page(w io.Writer, s campaign.Status) error {
	title := document.Words(s.Campaign)
	page := h.Doctype(h.HTML(
		h.Lang("en"),
		report.Head(report.Field(s.Campaign)+" · agent-ci campaign", report.Style+ownStyle, script),
		h.Body(
			h.A(h.Class("skip"), h.Href("#targets"), g.Text("Skip to the targets")),
			pageHeader(s, title),
			h.Main(report.Section("costs", "Costs", paragraphs(describeCosts(s))), targetTable(s)),
			h.Footer(report.Blocks(document.Paragraph{Text: document.Join(" ",
				document.Words("job"), document.Mono(s.Template), document.Words("plan"), document.Mono(s.Plan), document.Words("ledger"), document.Mono(s.Ledger))})),
			h.Script(g.Raw(script)),
		),
	))
	if err := page.Render(w); err != nil {
		return fmt.Errorf("write the page of the campaign: %w", err)
	}
	return nil
}

func paragraphs(lines []string) (nodes g.Group) {
	for _, line := range lines {
		nodes = append(nodes, report.Blocks(document.Paragraph{Text: document.Sentence(line)}))
	}
	return nodes
}

// pageHeader returns the head of the page: name, progress, counts, and why targets wait.
func pageHeader(s campaign.Status, title document.Text) g.Node {
	done, words := settledTargets(s)
	var counts document.Facts
	for _, c := range usedClasses(s) {
		counts = append(counts, document.Fact{Name: classStyles[c].words, Value: document.Words(transcript.GroupThousands(s.Counts[c]))})
	}
	var wait g.Node
	if why := describeWait(s); why != "" {
		wait = report.Blocks(document.Alert{Items: []document.Text{document.Sentence(why)}})
	}
	return h.Header(
		h.P(h.Class("brand"), g.Text("agent-ci campaign")),
		h.H1(report.Line(title)),
		h.P(h.Class("ending"), g.Text(words)),
		g.If(len(s.Targets) > 0, h.Progress(h.Aria("label", "Targets that are settled"), h.Max(strconv.Itoa(len(s.Targets))), h.Value(strconv.Itoa(done)))),
		report.Figures(counts),
		wait,
	)
}

// targetTable returns the table of all targets. A script on the page searches and sorts it.
func targetTable(s campaign.Status) g.Node {
	table := document.Table{Limit: document.Limit{MaxRows: len(s.Targets)}}
	for _, name := range []string{"Target", "State", "Pull request", "Runs", "Dollars", "Since (UTC)", "Note"} {
		table.Columns = append(table.Columns, document.Column{Name: name})
	}
	for _, r := range s.Targets {
		cost, since := "", ""
		if r.Report != nil && r.Report.CostUSD != nil {
			cost = fmt.Sprintf("%.2f", *r.Report.CostUSD)
		}
		if r.Since != nil {
			since = formatTime(*r.Since)
		}
		table.Rows = append(table.Rows, document.Row{
			document.Sentence(targetName(r.Target)),
			document.Text{{Text: classStyles[r.Class].words, Style: document.State, Tone: classStyles[r.Class].tone}},
			pullLinkText(s.Server, r),
			document.Words(strconv.Itoa(r.Attempts)), document.Words(cost), document.Words(since), document.Sentence(targetNote(r)),
		})
	}
	return report.Section("targets", "Targets",
		h.Div(
			h.Class("tools"), h.Role("search"), h.Aria("label", "Targets"), h.ID("tools"), g.Attr("hidden"),
			h.Label(
				h.Class("find"), h.Span(g.Text("Search")), g.Text(" "),
				h.Input(h.Type("search"), h.ID("search"), h.AutoComplete("off"), g.Attr("spellcheck", "false"), h.Aria("describedby", "found"), h.Placeholder("words of a row")),
			),
			h.Label(h.Class("check"), g.Text("State "), h.Select(
				h.ID("state"), h.Option(h.Value(""), g.Text("all")),
				g.Map(usedClasses(s), func(c campaign.Class) g.Node { return h.Option(g.Text(classStyles[c].words)) }),
			)),
			h.P(h.ID("found"), h.Role("status"), g.Text(transcript.GroupThousands(len(s.Targets))+" targets")),
		),
		h.Div(h.ID("rows"), report.Blocks(table)),
	)
}
