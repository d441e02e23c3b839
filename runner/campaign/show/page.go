package show

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/transcript/report"
)

var (
	//go:embed style.css
	ownStyle string
	//go:embed script.js
	script string
)

// Page writes the status as an HTML page, which loads nothing.
func Page(w io.Writer, s campaign.Status) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if err := newSheet(s).page().Render(out); err != nil {
		return fmt.Errorf("write the page of the campaign: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the page of the campaign: %w", err)
	}
	return nil
}

// sheet is what the page says.
type sheet struct {
	Campaign string
	Settled  int
	Total    int
	Spending []string
	Notices  []string
	Counts   []count
	Chart    *chart
	Rows     []pageRow
	Digests  []digest
}

type count struct {
	Words, Tone string
	Targets     int
}

type digest struct{ Name, Value string }

// tones are how classes look; what is none of them is plain.
var tones = map[campaign.Class]string{
	campaign.Opened: "good", campaign.Merged: "good", campaign.Committed: "good", campaign.Running: "open", campaign.ClosedUnmerged: "open", campaign.NeedsPerson: "open",
	campaign.Red: "bad", campaign.Budget: "bad", campaign.Refused: "bad", campaign.Failed: "bad", campaign.Lacking: "bad",
}

func newSheet(s campaign.Status) sheet {
	total := len(s.Targets)
	p := sheet{
		Campaign: field(s.Campaign, 100), Total: total, Settled: total - s.Counts[campaign.Waiting] - s.Counts[campaign.Running],
		Spending: spending(s), Chart: newChart(s.History, s.Counts[campaign.Lacking]),
		Digests: []digest{{"job", s.Template}, {"plan", s.Plan}, {"ledger", s.Ledger}},
	}
	if line := waiting(s); line != "" {
		p.Notices = append(p.Notices, field(line, 1000))
	}
	for _, class := range campaign.Classes() {
		if n := s.Counts[class]; n > 0 {
			p.Counts = append(p.Counts, count{words[class], tones[class], n})
		}
	}
	for _, r := range s.Targets {
		p.Rows = append(p.Rows, newPageRow(s.Server, r))
	}
	return p
}

// field is a text of a stranger, in one line.
func field(s string, most int) string {
	return markdown.Cut(strings.Join(strings.Fields(markdown.Show(markdown.Cut(s, 2*most))), " "), most)
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

func (s sheet) page() g.Node {
	return h.Doctype(h.HTML(
		h.Lang("en"),
		report.Head(s.Campaign+" · agent-ci campaign", report.Style()+ownStyle, script),
		h.Body(
			h.A(h.Class("skip"), h.Href("#targets"), g.Text("Skip to the targets")),
			s.header(),
			h.Main(s.burnDown(), s.targets()),
			s.footer(),
			h.Script(g.Raw(script)),
		),
	))
}

func (s sheet) header() g.Node {
	var notices g.Node
	if len(s.Notices) > 0 {
		notices = h.Ul(h.Class("notices"), h.Aria("label", "Notices"), g.Map(s.Notices, func(notice string) g.Node { return h.Li(g.Text(notice)) }))
	}
	return h.Header(
		h.P(h.Class("brand"), g.Text("agent-ci campaign")),
		h.H1(g.Text(s.Campaign)),
		h.P(h.Class("ending"), g.Text(thousands(s.Settled)+" of "+thousands(s.Total)+" targets settled")),
		h.Dl(h.Class("figures"), g.Map(s.Counts, func(c count) g.Node {
			return h.Div(h.Dt(g.Text(c.Words)), h.Dd(g.Text(thousands(c.Targets))))
		})),
		notices,
	)
}

func (s sheet) footer() g.Node {
	var digests g.Group
	for _, d := range s.Digests {
		if d.Value != "" {
			digests = append(digests, g.Text(d.Name+" "), h.Code(g.Text(d.Value)), g.Text(" "))
		}
	}
	return h.Footer(h.P(digests))
}

// thousands is a number as people read it.
func thousands(n int) string { return transcript.Thousands(int64(n)) }
