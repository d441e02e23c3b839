package report

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// fact is a line of two parts, the second perhaps a link or code, or of several values.
// Link is an address by transcript.Site, which checks what it makes one of.
type fact struct {
	Name, Value, Link string
	Code              bool
	Parts             []fact // in place of Value
}

// link is the page of a run, an issue or a pull request; links to nothing else are made
// of what stands in a transcript.
func link(url string) string { return transcript.Site{}.Page(url) }

func factList(class string, all []fact) g.Node {
	return h.Dl(h.Class(class), g.Map(all, func(f fact) g.Node {
		return h.Div(h.Dt(g.Text(f.Name)), h.Dd(f.value()))
	}))
}

func (f fact) value() g.Node {
	var all g.Group
	for i, part := range f.Parts {
		if i > 0 {
			all = append(all, g.Text(" · "))
		}
		all = append(all, part.value())
	}
	switch {
	case f.Link != "":
		return append(all, h.A(h.Href(f.Link), h.Rel("noopener noreferrer"), g.Text(f.Value)))
	case f.Code:
		return append(all, code(f.Value))
	}
	return append(all, g.Text(f.Value))
}
