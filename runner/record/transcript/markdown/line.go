package markdown

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// How much of a name and of a sentence is shown, in UTF-16 units before escaping.
const (
	nameUnits     = 300
	sentenceUnits = 2000
)

// Signs has the signs before the results of checks.
var Signs = map[document.Tone]string{document.Good: "✅ ", document.Doubtful: "⚠️ ", document.Bad: "❌ "}

// Line returns a text as one line of Markdown. It may be used in a list or table. Spans that only a
// page shows are left out.
func Line(t document.Text) string {
	var b strings.Builder
	for _, span := range t {
		if span.PageOnly {
			continue
		}
		piece := spanMarkdown(span, b.Len() == 0)
		if span.Link != "" {
			piece = Link(piece, span.Link)
			if strings.HasSuffix(b.String(), "!") { // otherwise "!" would make the link an image
				piece = zeroWidthSpace + piece
			}
		}
		writeSeparated(&b, piece)
	}
	return strings.TrimRight(b.String(), " ")
}

// amountPattern matches an amount in US dollars, such as $0.0123.
var amountPattern = lazyregexp.New(`^\$[0-9]+\.[0-9]+$`)

// spanMarkdown returns the Markdown of a span, without its link. At the start of a line, more characters need escapes.
func spanMarkdown(span document.Span, atLineStart bool) string {
	s := shortenSpan(span)
	switch {
	case s == "":
		return ""
	case span.Style == document.Monospace:
		return Code(s)
	case span.Style == document.Amount && amountPattern().MatchString(s): // a checked amount is no mathematics
		return s
	case span.Style == document.Result && span.Tone != document.Bad:
		return Signs[span.Tone] + plainInLine(s)
	case span.Style == document.Strong || span.Style == document.Result: // a bad result is strong, too
		text := escaped(oneLine(s))
		if text == "" {
			return trailingBlank(s)
		}
		text = Signs[span.Tone] + "**" + text + "**" + trailingBlank(s)
		if startsWithBlank(s) && !atLineStart {
			text = " " + text
		}
		return text
	case span.Link != "":
		return escapedName(s)
	}
	if atLineStart {
		return plainAtLineStart(s)
	}
	return plainInLine(s)
}

// escapedName returns the name of a link. GitHub makes no reference of "#1" in a link's name, so
// that needs no escape.
func escapedName(s string) string {
	return strings.ReplaceAll(escaped(oneLine(s)), "#"+zeroWidthSpace, "#")
}

// shortenSpan returns the text of a span, shortened to the limit for sentences or names.
func shortenSpan(span document.Span) string {
	if span.IsSentence {
		return Cut(span.Text, sentenceUnits)
	}
	return Cut(span.Text, nameUnits)
}

// HTMLLine returns a text on one line, for an element in an HTML block.
func HTMLLine(t document.Text) string {
	var b strings.Builder
	for _, span := range t {
		raw := shortenSpan(span)
		s := inHTML(raw)
		if s == "" {
			b.WriteString(trailingBlank(raw))
			continue
		}
		switch span.Style {
		case document.Strong:
			s = "<b>" + s + "</b>"
		case document.Monospace:
			s = "<code>" + s + "</code>"
		}
		if startsWithBlank(raw) {
			s = " " + s
		}
		b.WriteString(s + trailingBlank(raw))
	}
	return b.String()
}

// plainAtLineStart returns plain text at the start of a line as Markdown. It drops blanks at the start, reduces those
// at the end to one, and escapes marks that would begin a list, heading or other block.
func plainAtLineStart(s string) string { return strings.TrimLeft(Text(s)+trailingBlank(s), " ") }

// plainInLine returns plain text inside a line as Markdown. It reduces blanks at the start, and at the end, to one.
func plainInLine(s string) string {
	text := escaped(oneLine(s))
	if text != "" && startsWithBlank(s) {
		text = " " + text
	}
	return text + trailingBlank(s)
}

func startsWithBlank(s string) bool { return strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\t") }

// trailingBlank returns a blank if s ends in one, or "".
func trailingBlank(s string) string {
	if strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\t") {
		return " "
	}
	return ""
}

// writeSeparated writes s to b. It separates two equal marks that would otherwise join.
func writeSeparated(b *strings.Builder, s string) {
	startsWithMark := strings.HasPrefix(s, "`") || strings.HasPrefix(s, "*")
	if startsWithMark && strings.HasSuffix(b.String(), s[:1]) {
		b.WriteString(zeroWidthSpace)
	}
	b.WriteString(s)
}
