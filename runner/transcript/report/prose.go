package report

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// block is a paragraph of a message, or what stands in place of one. Models
// write Markdown; the little of it that is understood here is code, headings,
// items and bold text, everything else is text.
type block struct {
	Kind  string // p, h, li, code, cut
	Depth int    // of an item
	Text  string // of code, and of what is cut
	Spans []span
}

type span struct {
	Kind string // text, code, bold
	Text string
}

// node begins code with a newline, which HTML takes for none of the text.
func (b block) node() g.Node {
	text := g.Map(b.Spans, span.node)
	switch b.Kind {
	case "code":
		return h.Pre(g.Text("\n" + b.Text))
	case "cut":
		return cutNote("… " + b.Text + " …")
	case "h":
		return h.P(h.Class("h"), text)
	case "li":
		return h.P(h.Class(fmt.Sprintf("li d%d", b.Depth)), text)
	}
	return h.P(text)
}

func (s span) node() g.Node {
	switch s.Kind {
	case "code":
		return code(s.Text)
	case "bold":
		return h.B(g.Text(s.Text))
	}
	return g.Text(s.Text)
}

// marks are the patterns of Markdown that are understood. They are compiled when
// they are first needed: at start-up they would cost every command time.
type marks struct{ fence, item, heading, inline *regexp.Regexp }

var markdownMarks = sync.OnceValue(func() marks {
	return marks{
		fence:   regexp.MustCompile("^[ \t]*(```+|~~~+)([^`]*)$"),
		item:    regexp.MustCompile(`^([ \t]*)([-*+]|[0-9]{1,3}[.)])[ \t]+(\S.*)$`),
		heading: regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*$`),
		inline:  regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*"),
	}
})

func prose(e excerpt) []block {
	all := blocks(e.Head)
	if e.Hidden != "" {
		all = append(all, block{Kind: "cut", Text: e.Hidden})
		all = append(all, blocks(e.Tail)...)
	}
	return all
}

func blocks(s string) []block {
	p := &layout{marks: markdownMarks(), rest: strings.Split(strings.Trim(s, "\n"), "\n")}
	for len(p.rest) > 0 {
		p.next()
	}
	p.endParagraph()
	return p.blocks
}

type layout struct {
	marks  marks
	rest   []string
	lines  []string // of the paragraph that has begun
	blocks []block
}

func (p *layout) next() {
	text := p.rest[0]
	p.rest = p.rest[1:]
	if m := p.marks.fence.FindStringSubmatch(text); m != nil {
		p.fence(m[1])
	} else if strings.TrimSpace(text) == "" {
		p.endParagraph()
	} else if m := p.marks.heading.FindStringSubmatch(text); m != nil {
		p.add(block{Kind: "h", Spans: spans(m[1])})
	} else if m := p.marks.item.FindStringSubmatch(text); m != nil {
		p.add(block{Kind: "li", Depth: depth(m[1]), Spans: append(bullet(m[2]), spans(m[3])...)})
	} else {
		p.lines = append(p.lines, text)
	}
}

// add adds a block behind the paragraph that it ends.
func (p *layout) add(b block) {
	p.endParagraph()
	p.blocks = append(p.blocks, b)
}

// deepest is the greatest depth of an item that is shown.
const deepest = 3

func depth(indent string) int {
	return min(deepest, len(strings.ReplaceAll(indent, "\t", "    "))/2)
}

// bullet keeps the number of an item that has one.
func bullet(sign string) []span {
	if len(sign) == 1 {
		return []span{{"text", "• "}}
	}
	return []span{{"text", sign + " "}}
}

// endParagraph ends the paragraph, or the item that its lines go on with.
func (p *layout) endParagraph() {
	if len(p.lines) == 0 {
		return
	}
	indented := strings.HasPrefix(p.lines[0], "  ")
	all := spans(strings.Join(p.lines, "\n"))
	p.lines = nil
	if n := len(p.blocks); n > 0 && indented && p.blocks[n-1].Kind == "li" {
		p.blocks[n-1].Spans = append(append(p.blocks[n-1].Spans, span{"text", "\n"}), all...)
		return
	}
	p.blocks = append(p.blocks, block{Kind: "p", Spans: all})
}

// fence takes the lines up to the end of a block of code, or all.
func (p *layout) fence(mark string) {
	n := 0
	for n < len(p.rest) && !strings.HasPrefix(strings.TrimSpace(p.rest[n]), mark) {
		n++
	}
	p.add(block{Kind: "code", Text: strings.Join(p.rest[:n], "\n")})
	p.rest = p.rest[min(n+1, len(p.rest)):]
}

func spans(s string) []span {
	var all []span
	done := 0
	add := func(kind string, from, to int) {
		if from < to {
			all = append(all, span{kind, s[from:to]})
		}
	}
	for _, m := range markdownMarks().inline.FindAllStringSubmatchIndex(s, -1) {
		add("text", done, m[0])
		add("code", m[2], m[3])
		add("bold", m[4], m[5])
		done = m[1]
	}
	add("text", done, len(s))
	return all
}
