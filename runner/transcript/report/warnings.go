package report

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (o *overview) warningsSection() g.Node {
	all := o.View.Warnings
	if len(all) == 0 {
		return nil
	}
	return section("warnings", "Warnings",
		h.Ul(g.Map(shownOf(all), func(w transcript.Warning) g.Node {
			return h.Li(g.Text(shownText(w.Message, 2000)+" "), code(field(w.Code)))
		})),
		sentence(moreRows("warning", len(all))),
	)
}
