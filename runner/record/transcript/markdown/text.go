package markdown

import (
	"strings"
	"unicode/utf16"
)

// zeroWidthSpace separates two characters that GitHub would otherwise combine.
const zeroWidthSpace = "&#8203;" // zero width space

// Text returns s as running text on one line. It may begin a line, and may be used in a list item,
// a quote or a table cell.
func Text(s string) string {
	s = oneLine(s)
	if startsBlock(s) {
		return `\` + escaped(s)
	}
	return escaped(s)
}

// escaped returns a clean line without markup and effects, for use after the start of a line.
func escaped(s string) string { return makeInert(s, isMarkup) }

// makeInert returns a clean line without effects. It escapes the characters for which escape returns true.
func makeInert(s string, escape func(s string, i int) bool) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := 0; i < len(s); {
		if text, n := inertForm(s, i); n > 0 {
			b.WriteString(text)
			i += n
			continue
		}
		if escape(s, i) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// inHTML returns s as one line of text for an HTML element in Markdown.
func inHTML(s string) string {
	return makeInert(oneLine(s), func(string, int) bool { return false })
}

// startsBlock reports whether s would begin a block or, with "::" and "/", a command. isMarkup
// handles other characters, such as the number of a list.
func startsBlock(s string) bool {
	return s != "" && strings.IndexByte("#-+=:/", s[0]) >= 0
}

// isMarkup reports whether the character at s[i] would have a meaning in Markdown.
func isMarkup(s string, i int) bool {
	switch s[i] {
	case '\\', '`', '*', '[', ']', '~':
		return true
	case '_': // inside a word it means nothing, and snake_case stays readable
		insideWord := 0 < i && i < len(s)-1 && isWord(s[i-1]) && isWord(s[i+1])
		return !insideWord
	case '.', ')':
		return isListNumber(s[:i]) && (i == len(s)-1 || s[i+1] == ' ')
	}
	return false
}

// isListNumber reports whether s is a number that could begin a list item.
func isListNumber(s string) bool {
	return s != "" && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}

// inertForm returns a harmless form of the text at s[i], and how many bytes of s it replaces. n is 0 if
// the text is harmless already. The rules are those of HTML and of GitHub for plain text.
func inertForm(s string, i int) (text string, n int) {
	rest := s[i+1:]
	switch s[i] {
	case '<':
		return "&lt;", 1
	case '>':
		if i == 0 { // a quote
			return "&gt;", 1
		}
	case '&':
		if rest != "" && (rest[0] == '#' || isWord(rest[0])) { // an entity
			return "&amp;", 1
		}
	case '|':
		return "&#124;", 1
	case '$': // the way that GitHub recommends against mathematics
		return "<span>$</span>", 1
	case '[':
		const longest = 20 // no word for skipping CI is longer, with its brackets
		if m := skipsCI().FindStringIndex(s[i:min(len(s), i+longest)]); m != nil && m[0] == 0 {
			return "&#91;", 1
		}
	case '@':
		return "@" + zeroWidthSpace, 1
	case '#':
		// The number of an issue may follow, or the bracket of an old workflow command. At the end
		// of s, the following text is unknown.
		if rest == "" || rest[0] == '[' || isDigit(rest[0]) {
			return "#" + zeroWidthSpace, 1
		}
	case ':':
		if strings.HasPrefix(rest, "//") {
			return ":" + zeroWidthSpace + "//", 3
		}
	case 'w', 'W':
		if hasPrefixFold(s[i:], "www.") {
			return s[i:i+3] + zeroWidthSpace + ".", 4
		}
	case 'g', 'G':
		if hasPrefixFold(s[i:], "gh-") {
			return s[i:i+2] + zeroWidthSpace + "-", 3
		}
	}
	return "", 0
}

// hasPrefixFold reports whether s begins with prefix in any case.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Units returns the length of s in UTF-16 units. GitHub counts in these.
func Units(s string) int {
	units := 0
	for _, r := range s {
		units += utf16.RuneLen(r)
	}
	return units
}

// Cut shortens s to limit UTF-16 units, limit being at least 1. A shortened text ends in "…". It
// does not split characters.
func Cut(s string, limit int) string {
	if len(s) <= limit { // no character has more units than bytes
		return s
	}
	units, keep := 0, 0
	for i, r := range s {
		if units < limit {
			keep = i
		}
		if units += utf16.RuneLen(r); units > limit {
			return s[:keep] + "…"
		}
	}
	return s
}
