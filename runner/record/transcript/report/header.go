package report

import (
	"cmp"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// header draws the top of the page, with the verdict first. places are the sections to link to.
func (o *overview) header(source *sections.Source, places []document.Section) g.Node {
	var verdict g.Node
	if tone, words := sections.Verdict(o.View, sections.NoDoubt); len(words) > 0 {
		verdict = h.P(h.Class("verdict"), h.Span(h.Class("badge "+tones[tone]), g.Text(signs[tone]), Line(words)))
	}
	return h.Header(
		h.P(h.Class("brand"), g.Text("agent-ci report")),
		h.H1(g.Text(o.title())),
		verdict,
		ending(o.View, source.Links),
		Figures(o.figures()),
		g.Map(source.ForPages(sections.Head), func(s document.Section) g.Node { return Blocks(s.Blocks...) }),
		h.Nav(h.Aria("label", "Sections"), h.Ul(g.Map(places, func(s document.Section) g.Node {
			if s.Title == "" {
				return nil
			}
			return h.Li(h.A(h.Href("#"+s.ID), g.Text(s.Title)))
		}))),
	)
}

// title returns the title of the page.
func (o *overview) title() string {
	return Field(cmp.Or(sections.Title(o.View), o.View.Started.Key, "A run of agent-ci"))
}

// figures returns the run's main numbers.
func (o *overview) figures() (all document.Facts) {
	v, took := o.View, o.lastEvent
	if v.Finished != nil {
		took = transcript.FormatSeconds(v.Finished.Seconds)
	}
	add := func(name, value string) { all = append(all, document.Fact{Name: name, Value: document.Words(value)}) }
	add("Time", took)
	add("Turns", transcript.GroupThousands(v.Turns))
	add("Calls", transcript.GroupThousands(v.Calls))
	add("Tokens", transcript.GroupThousands(v.Usage.Input+v.Usage.Output))
	if v.Change != nil {
		add("Change", v.Change.DescribeLines())
	}
	return all
}
