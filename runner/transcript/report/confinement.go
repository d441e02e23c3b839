package report

import (
	"cmp"
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (o *overview) confinementSection() g.Node {
	confinement := sentence("The run ended before any confinement.")
	if all := o.confinement(); len(all) > 0 {
		confinement = factList("facts", all)
	}
	var refusals g.Node
	if len(o.Refusals) > 0 {
		refusals = h.Ul(g.Map(o.Refusals, func(r reference) g.Node {
			return h.Li(eventLink(r.Seq), g.Text(" "+r.Tool+" "), code(r.Topic), g.Text(", by "+r.Rule))
		}))
	}
	return section("confinement", "Confinement and refusals", confinement, sentence(o.refusedWords()), refusals)
}

func (o *overview) confinement() []fact {
	p := o.View.Policy
	if p.Level == "" {
		return nil
	}
	reached := field(p.Level)
	if p.Unconfined() {
		reached = "none: commands ran with all rights of the user"
	}
	all := []fact{
		{Name: "Reached", Value: reached},
		{Name: "Layers", Value: cmp.Or(layerNames(p.Layers), "none")},
		{Name: "Asked for", Value: field(p.Sandbox)},
		{Name: "Network", Value: field(p.Network)},
	}
	if tree := p.WorkTreeWords(); tree != "" {
		all = append(all, fact{Name: "Work tree", Value: field(tree)})
	}
	return all
}

// layerNames are the layers whole: each is a short field, all of them are not.
func layerNames(layers []string) string {
	const most = 20
	var names []string
	for _, layer := range layers[:min(len(layers), most)] {
		names = append(names, field(layer))
	}
	return strings.Join(names, ", ")
}

func (o *overview) refusedWords() string {
	var what []string
	if calls := o.refused - o.hosts; calls > 0 {
		what = append(what, transcript.Count(calls, "call"))
	}
	if o.hosts > 0 {
		what = append(what, transcript.Count(o.hosts, "host"))
	}
	words := "The policy refused " + cmp.Or(strings.Join(what, " and "), "no call")
	if o.refused > len(o.Refusals) {
		words += fmt.Sprintf(", of which the first %d are shown", len(o.Refusals))
	}
	return words + "."
}
