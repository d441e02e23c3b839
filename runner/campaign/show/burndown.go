package show

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/campaign"
)

func (s sheet) burnDown() g.Node {
	chart := h.P(g.Text("Nothing has been settled yet."))
	if s.Chart != nil {
		chart = s.Chart.node()
	}
	return h.Section(
		h.Aria("labelledby", "burndown-h"),
		h.H2(h.ID("burndown-h"), g.Text("Burn-down")),
		chart,
		g.Map(s.Spending, func(line string) g.Node { return h.P(h.Class("source"), g.Text(line)) }),
	)
}

// node is the chart, its axis, and the same in numbers.
func (c *chart) node() g.Node {
	return g.Group{
		h.Div(h.Class("chart"), h.SVG(
			g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", c.Width, c.Height)), g.Attr("preserveAspectRatio", "none"),
			h.Role("img"), h.Aria("label", fmt.Sprintf("Targets that were left: %d at most, %d at the end", c.Most, c.Left)),
			g.El("polygon", h.Class("area"), g.Attr("points", c.Area)),
			g.El("polyline", h.Class("left"), g.Attr("points", c.Line)),
		)),
		h.P(
			h.Class("axis"),
			h.Span(g.Text(c.From)),
			h.Span(g.Textf("%d left at most, %d in the end", c.Most, c.Left)),
			h.Span(g.Text(c.To+" UTC")),
		),
		h.Details(
			h.Summary(g.Text("The same as a table")),
			h.Table(
				columns("Time (UTC)", "Left", "Dollars spent"),
				h.TBody(g.Map(c.Steps, func(s step) g.Node {
					return h.Tr(h.Td(g.Text(s.At)), h.Td(g.Text(fmt.Sprint(s.Left))), h.Td(g.Text(s.USD)))
				})),
			),
		),
	}
}

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
