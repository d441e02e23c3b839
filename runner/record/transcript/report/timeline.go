package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// longTimeline is the number of entries above which the browser only lays out visible entries.
const longTimeline = 500

// timelineSection draws the timeline with its search tools.
func (o *overview) timelineSection(entries g.Node) g.Node {
	class := "entries"
	if o.entries > longTimeline {
		class += " long"
	}
	return Section("timeline", "Timeline",
		h.TabIndex("-1"),
		o.timelineTools(),
		h.Ol(h.Class(class), h.ID("entries"), g.Text("\n"), entries),
	)
}

// timelineTools draws the search tools, which stay hidden unless the script runs.
func (o *overview) timelineTools() g.Node {
	count := strings.Replace(transcript.CountNoun(o.entries, "entry"), "entrys", "entries", 1)
	return h.Div(
		h.Class("tools"), h.Role("search"), h.Aria("label", "Timeline"), h.ID("tools"), g.Attr("hidden"),
		h.Label(
			h.Class("find"), h.Span(g.Text("Search")), g.Text(" "),
			h.Input(h.Type("search"), h.ID("search"), h.AutoComplete("off"), g.Attr("spellcheck", "false"), h.Aria("describedby", "found"), h.Placeholder("words in any message, call or output")),
		),
		h.Label(h.Class("check"), h.Input(h.Type("checkbox"), h.ID("problems")), g.Textf(" only problems (%d)", o.Problems)),
		h.Label(h.Class("check"), h.Input(h.Type("checkbox"), h.ID("beside")), g.Text(" diffs side by side")),
		h.Span(
			h.Class("buttons"),
			h.Button(h.Type("button"), h.ID("unfold"), g.Text("Unfold all")), g.Text(" "),
			h.Button(h.Type("button"), h.ID("fold"), g.Text("Fold all")),
		),
		h.P(h.ID("found"), h.Role("status"), g.Text(count)),
	)
}

// node draws an entry of the timeline. It can be unfolded if it has parts.
func (e *entry) node() g.Node {
	class := e.Kind
	if e.Nested {
		class += " nested"
	}
	if e.Bad {
		class += " bad"
	}
	body := e.line
	switch {
	case e.Kind == "turn":
		body = e.turn
	case len(e.Parts) > 0:
		body = e.folded
	}
	number := fmt.Sprint(e.Seq)
	return g.Group{
		h.Li(
			h.Class(class), h.ID(sections.EventID(e.Seq)),
			h.A(h.Class("seq"), h.Href("#"+sections.EventID(e.Seq)), h.Aria("label", "Event "+number), g.Text(number)),
			h.Span(h.Class("at"), g.Text(e.At)),
			h.Div(h.Class("body"), body()),
		),
		g.Text("\n"),
	}
}

// turn draws a turn of the model. Its input and reasoning are folded.
func (e *entry) turn() g.Node {
	var until, parts g.Node
	if e.Until != 0 {
		until = h.Span(h.ID(sections.EventID(e.Until)))
	}
	if len(e.Parts) > 0 {
		parts = h.Details(h.Summary(Line(document.Join(" · ", e.Titles...))), e.Parts)
	}
	heading := g.Group{Line(document.Words(e.Name))}
	if e.Agent != "" {
		heading = append(heading, g.Text(" "), labelled("agent", e.Agent))
	}
	return g.Group{
		h.H3(heading, g.Text(" "), labelled("about", e.Topic), g.Text(" "), labelled("end", e.End)),
		until,
		e.message(),
		parts,
	}
}

// labelled draws a text with a CSS class.
func labelled(class, text string) g.Node { return h.Span(h.Class(class), Line(document.Words(text))) }

// folded draws an entry that has more than one line.
func (e *entry) folded() g.Node {
	var by g.Node
	if e.By != 0 {
		by = h.P(h.Class("cut"), g.Text("Called by "), Line(document.Text{{Text: fmt.Sprintf("#%d", e.By), PageAnchor: sections.EventID(e.By)}}), g.Text("."))
	}
	return g.Group{
		h.Details(
			g.If(e.Open, g.Attr("open")),
			h.Summary(e.summary()),
			by,
			e.Parts,
		),
		e.message(),
	}
}

// line draws an entry that has one line and perhaps a message.
func (e *entry) line() g.Node {
	return g.Group{h.P(h.Class("line"), e.summary()), e.message()}
}

// summary draws an entry as one line.
func (e *entry) summary() g.Node {
	var words g.Group
	if e.Agent != "" {
		words = append(words, labelled("agent", e.Agent), g.Text(" "))
	}
	if e.Line != nil {
		return append(words, Line(capitalised(e.Line)))
	}
	words = append(words, Line(document.Join(" ", document.Text{{Text: e.Name, Style: document.Strong}}, document.Mono(e.Topic))))
	if e.End != "" {
		words = append(words, g.Text(" "), labelled("end", e.End))
	}
	return words
}

// capitalised returns a line with a capital at the start.
func capitalised(line document.Text) document.Text {
	if len(line) == 0 || line[0].Text == "" {
		return line
	}
	line = slices.Clone(line)
	first, size := utf8.DecodeRuneInString(line[0].Text)
	line[0].Text = string(unicode.ToUpper(first)) + line[0].Text[size:]
	return line
}

// message draws the agent's messages in the entry.
func (e *entry) message() g.Node {
	if len(e.Message) == 0 {
		return nil
	}
	return h.Div(h.Class("prose"), e.Message)
}
