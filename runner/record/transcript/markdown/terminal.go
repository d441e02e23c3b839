package markdown

import "strings"

// Screen returns a line as a terminal finally shows it, without control sequences and text that was
// overwritten after a carriage return.
func Screen(line string) string {
	var b strings.Builder
	rest := strings.TrimRight(line, "\r\n")
	for rest != "" {
		n := strings.IndexByte(rest, '\x1b')
		if n < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:n])
		rest = rest[n:]
		rest = rest[max(1, escapeSequence(rest)):] // at least the escape character itself
	}
	written := b.String()
	shownFrom := strings.LastIndexByte(strings.TrimRight(written, "\r"), '\r') + 1 // the text before it was overwritten
	return visibleText(written[shownFrom:])
}

// escapeSequence returns the length of the escape sequence at the beginning of s, or 0. Besides control
// sequences and control strings (ECMA-48, sections 5.4 and 5.6), there are sequences of intermediate bytes
// (0x20 to 0x2f) and one final byte (ECMA-35, section 13.2).
func escapeSequence(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '[':
		return terminalSequence(s)
	case 'P', 'X', ']', '^', '_':
		return controlString(s)
	}
	for i := 1; i < len(s) && s[i] >= 0x20 && s[i] < 0x7f; i++ {
		if isFinal := s[i] >= 0x30; isFinal {
			return i + 1
		}
	}
	return 0
}

// controlString returns the length of a control string, such as a window title. Without an end,
// that is all of s.
func controlString(s string) int {
	for i := 2; i < len(s); i++ {
		switch {
		case s[i] == '\a':
			return i + 1
		case strings.HasPrefix(s[i:], "\x1b\\"):
			return i + 2
		}
	}
	return len(s)
}
