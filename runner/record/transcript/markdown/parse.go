package markdown

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Block is a line of a message, or a block of code.
type Block struct {
	Kind  Kind
	Level int    // of a heading, from 1; depth of a list item and its lines, from 0
	Mark  string // of a list item: "-", or its number with a full stop
	box   bool   // the item of a template has a box
	Gap   bool   // an empty line comes before
	Text  document.Text
	code  []string // lines
}

// CodeText returns the lines of a code block as one text.
func (b Block) CodeText() string { return strings.Join(b.code, "\n") }

// Kind is the kind of a Block.
type Kind int

// The kinds of blocks.
const (
	ParagraphLine Kind = iota
	Heading
	Item
	ItemLine // a further line of an item
	CodeBlock
)

var (
	fenceLine   = lazyregexp.New("^[ \t]*(```+|~~~+)([^`]*)$")
	itemLine    = lazyregexp.New(`^([ \t]*)([-*+]|[0-9]{1,3}[.)])[ \t]+(\S.*)$`)
	headingLine = lazyregexp.New(`^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$`)
	boxLine     = lazyregexp.New(`^\[[ xX]\][ \t]+(\S.*)$`)
)

// maxDepth limits the depth of list items. Deeper ones would become code.
const maxDepth = 3

// Parse parses the Markdown of a model: lists, code, bold text and headings. Everything else is
// plain text.
func Parse(s string) []Block { return parse(s, parseItem) }

// parse parses Markdown into blocks. itemOf parses a list item, as parseItem does.
func parse(s string, itemOf func(groups []string, before []Block) Block) (all []Block) {
	rest := strings.Split(strings.Trim(s, "\n"), "\n")
	gap := false
	for len(rest) > 0 {
		text := rest[0]
		rest = rest[1:]
		last := Block{}
		if len(all) > 0 && !gap {
			last = all[len(all)-1]
		}
		b := Block{Gap: gap}
		if m := fenceLine().FindStringSubmatch(text); m != nil {
			end := 0
			for end < len(rest) && !closesFence(rest[end], m[1]) {
				end++
			}
			b.Kind, b.code = CodeBlock, rest[:end]
			rest = rest[min(end+1, len(rest)):]
		} else if strings.TrimSpace(text) == "" {
			gap = true
			continue
		} else if m := headingLine().FindStringSubmatch(text); m != nil {
			b.Kind, b.Level, b.Text = Heading, len(m[1]), Inline(m[2])
		} else if m := itemLine().FindStringSubmatch(text); m != nil {
			b = itemOf(m, all)
			b.Gap = gap
		} else {
			b.Text = Inline(text)
			if last.Kind == Item || last.Kind == ItemLine {
				b.Kind, b.Level = ItemLine, last.Level
			}
		}
		all, gap = append(all, b), false
	}
	return all
}

// closesFence reports whether a line ends the code block that mark began.
func closesFence(line, mark string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(mark) && strings.Trim(line, mark[:1]) == ""
}

// parseItem parses a list item from the groups of itemLine. It is at most one level deeper than the item
// before.
func parseItem(groups []string, before []Block) Block {
	indent, marker, text := groups[1], groups[2], groups[3]
	b := Block{Kind: Item, Mark: "-"}
	if n := len(before); n > 0 && (before[n-1].Kind == Item || before[n-1].Kind == ItemLine) {
		columns := len(indent) + 3*strings.Count(indent, "\t") // a tab has four columns
		b.Level = min(columns/2, before[n-1].Level+1, maxDepth)
	}
	if isDigit(marker[0]) {
		b.Mark = strings.TrimRight(marker, ".)") + "."
	}
	b.Text = Inline(text)
	return b
}

// parseTemplateItem parses a list item of a template, which may begin with a box.
func parseTemplateItem(groups []string, before []Block) Block {
	b := parseItem(groups, before)
	if box := boxLine().FindStringSubmatch(groups[3]); box != nil {
		b.box, b.Text = true, Inline(box[1])
	}
	return b
}

// Inline parses the code spans and bold parts of a line.
func Inline(s string) document.Text { return spans(strings.TrimSpace(s), document.Plain) }

// spans splits a line into plain, bold and monospace spans. style is the style of plain text.
func spans(s string, style document.Style) (text document.Text) {
	add := func(s string, style document.Style) {
		if s != "" {
			text = append(text, document.Span{Text: s, Style: style, IsSentence: true})
		}
	}
	for s != "" {
		start, mark, inside, end := nextSpan(s)
		add(s[:start], style)
		switch mark {
		case "":
		case "**":
			text = append(text, spans(inside, document.Strong)...)
		default:
			add(inside, document.Monospace)
		}
		s = s[end:]
	}
	return text
}

// nextSpan returns the first marked part of s, such as "**bold**": where it begins and ends, its mark, and the
// text inside. Without one, mark and inside are empty, and start and end are the length of s.
func nextSpan(s string) (start int, mark, inside string, end int) {
	for start < len(s) {
		mark := spanMark(s[start:])
		inner := start + max(1, len(mark))
		if n := spanLen(s[inner:], mark); n > 0 {
			return start, mark, s[inner : inner+n], inner + n + len(mark)
		}
		start = inner
	}
	return start, "", "", start
}

// spanMark returns the mark at the beginning of s: two asterisks, a run of backticks, or "".
func spanMark(s string) string {
	if strings.HasPrefix(s, "**") {
		return "**"
	}
	return s[:len(s)-len(strings.TrimLeft(s, "`"))]
}

// spanLen returns the length of the text before the closing mark, or 0 if s has no closing mark or no text
// before it.
func spanLen(s, mark string) int {
	switch n := strings.Index(s, mark); {
	case mark == "":
		return 0
	case mark == "**" && (n <= 0 || s[0] == ' ' || s[n-1] == ' '): // no bold text has a blank at its ends
		return 0
	case mark == "**":
		return n
	}
	for i := 0; i < len(s); {
		run := spanMark(s[i:])
		if run == mark {
			return i
		}
		i += max(1, len(run))
	}
	return 0
}
