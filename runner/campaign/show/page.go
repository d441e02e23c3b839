package show

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/transcript/report"
)

var (
	//go:embed page.tmpl
	pageTemplate string
	//go:embed style.css
	ownStyle template.CSS
	//go:embed script.js
	script template.JS
)

// Page writes the status as an HTML page, which loads nothing.
func Page(w io.Writer, s campaign.Status) error {
	page, err := template.New("campaign").Parse(pageTemplate)
	if err == nil {
		err = page.Execute(w, newSheet(s))
	}
	if err != nil {
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

// pageRow is a target. Numbers are apart from their words, for sorting.
type pageRow struct {
	Name, Words, Tone, Link, Why string
	Pull, Attempts               int
	Cost, Since                  string
	CostUSD                      float64
	SinceUnix                    int64
}

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

// field is a text of a stranger, in one line.
func field(s string, most int) string {
	return markdown.Cut(strings.Join(strings.Fields(markdown.Show(markdown.Cut(s, 2*most))), " "), most)
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

// The size of the chart, in its own units.
const (
	chartWidth  = 720
	chartHeight = 180
)

// mostSteps is how many moments the table below the chart has.
const mostSteps = 12

// chart is the burn-down: how many targets were left, over time.
type chart struct {
	Width, Height int
	Line, Area    string // points
	Most, Left    int    // targets that were left at most, and in the end
	From, To      string
	Steps         []step
}

type step struct {
	At   string
	Left int
	USD  string
}

// newChart is nil where nothing has gone on for a while.
func newChart(history []campaign.Moment, lacking int) *chart {
	if len(history) < 2 {
		return nil
	}
	first, last := history[0].At, history[len(history)-1].At
	span := last.Sub(first)
	if span <= 0 {
		return nil
	}
	left := func(m campaign.Moment) int { return max(0, m.Targets-m.Settled-lacking) }
	c := &chart{Width: chartWidth, Height: chartHeight, Most: 1, From: clock(first), To: clock(last), Left: left(history[len(history)-1])}
	for _, m := range history {
		c.Most = max(c.Most, left(m))
	}
	var points []string
	before := chartHeight
	for i, m := range history {
		x, y := int(float64(chartWidth)*float64(m.At.Sub(first))/float64(span)), chartHeight-chartHeight*left(m)/c.Most
		if i > 0 { // a step: nothing changes between two events
			points = append(points, fmt.Sprintf("%d,%d", x, before))
		}
		points = append(points, fmt.Sprintf("%d,%d", x, y))
		before = y
	}
	c.Line = strings.Join(points, " ")
	c.Area = fmt.Sprintf("0,%d %s %d,%d", chartHeight, c.Line, chartWidth, chartHeight)
	for i := range min(mostSteps, len(history)) {
		m := history[i*(len(history)-1)/(min(mostSteps, len(history))-1)]
		c.Steps = append(c.Steps, step{clock(m.At), left(m), fmt.Sprintf("%.2f", m.SpentUSD)})
	}
	return c
}

func (sheet) Style() template.CSS { return report.Style() + ownStyle }

func (sheet) Script() template.JS { return script }

// Policy keeps the page to its own style and script.
func (s sheet) Policy() string { return report.Policy(s.Style(), s.Script()) }

// Thousands is a number as people read it.
func (sheet) Thousands(n int) string { return transcript.Thousands(int64(n)) }
