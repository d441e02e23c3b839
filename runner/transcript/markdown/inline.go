package markdown

import "strings"

// inline is a line as text, with its code spans and bold parts as such.
func inline(s string) string {
	var b strings.Builder
	s = strings.TrimSpace(s)
	for s != "" {
		span := nextSpan(s)
		writeApart(&b, between(s[:span.start], b.Len() == 0))
		writeApart(&b, span.markdown(s))
		s = s[span.end:]
	}
	return b.String()
}

// writeApart keeps the marks at the end of b and at the start of s from being
// taken for one run of them.
func writeApart(b *strings.Builder, s string) {
	if b.Len() > 0 && s != "" && (s[0] == '`' || s[0] == '*') && strings.HasSuffix(b.String(), s[:1]) {
		b.WriteString(apart)
	}
	b.WriteString(s)
}

// span is a marked part of a line, its marks included.
type span struct {
	start, end int
	mark       string // backticks, "**", or "" for none
}

func (p span) markdown(s string) string {
	if p.mark == "" {
		return ""
	}
	inner := s[p.start+len(p.mark) : p.end-len(p.mark)]
	if p.mark != "**" {
		return Code(inner)
	}
	if bold := inline(inner); bold != "" {
		return "**" + bold + "**"
	}
	return ""
}

// nextSpan finds the first span of s. Where there is none it is an empty one at
// the end.
func nextSpan(s string) span {
	for i := 0; i < len(s); {
		mark := spanMark(s[i:])
		if mark == "" {
			i++
			continue
		}
		inner := i + len(mark)
		if n := spanLen(s[inner:], mark); n > 0 {
			return span{start: i, end: inner + n + len(mark), mark: mark}
		}
		i = inner
	}
	return span{start: len(s), end: len(s)}
}

func spanMark(s string) string {
	if strings.HasPrefix(s, "**") {
		return "**"
	}
	return s[:len(s)-len(strings.TrimLeft(s, "`"))]
}

// spanLen is the length of the span's inside, if s goes on to its other mark.
func spanLen(s, mark string) int {
	if mark == "**" {
		n := strings.Index(s, mark)
		if n <= 0 || s[0] == ' ' || s[n-1] == ' ' {
			return 0
		}
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

// between is the text next to spans, with the blanks that part it from them.
// Only the first text of a line can begin a block.
func between(s string, first bool) string {
	if first {
		return strings.TrimLeft(Text(s)+trailingBlank(s), " ")
	}
	text := escaped(oneLine(s))
	if text == "" {
		return trailingBlank(s)
	}
	if s[0] == ' ' || s[0] == '\t' {
		text = " " + text
	}
	return text + trailingBlank(s)
}

func trailingBlank(s string) string {
	if strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\t") {
		return " "
	}
	return ""
}
