package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cut keeps the two ends of what was printed, in limit bytes of text. head and tail
// are its beginning and end as text, each at least as long as its share of limit. It
// has the warning and the marker of the reference implementation, which models know,
// and after it where the whole is kept, in words.
func (p *Printed) cut(head, tail string, limit int, kept string) string {
	head = firstBytes(head, limit/2)
	tail = lastBytes(tail, limit-limit/2)
	missing := max(p.bytes-int64(len(head)+len(tail)), 1)
	if !strings.HasSuffix(head, "\n") && head != "" {
		head += "\n"
	}
	return fmt.Sprintf("Warning: truncated output (original token count: %d)\nTotal output lines: %d\n\n%s…%d tokens truncated; %s…\n%s",
		Tokens(p.bytes), p.lines, head, Tokens(missing), kept, tail)
}

// firstBytes is the beginning of text in at most n bytes. It ends with a line
// where that loses at most a quarter, else between two runes.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if line := strings.LastIndexByte(text[:n], '\n') + 1; line >= n-n/4 && line > 0 {
		return text[:line]
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// lastBytes is the end of text in at most n bytes, by the same rule.
func lastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	start := len(text) - n
	if text[start-1] == '\n' {
		return text[start:]
	}
	if line := strings.IndexByte(text[start:], '\n') + 1; line > 0 && line <= n/4 {
		return text[start+line:]
	}
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}
