package markdown

import "strings"

// Screen is a line as a terminal shows it in the end, cleaned: what steers the terminal
// is gone, and so is what a carriage return goes back over.
func Screen(line string) string {
	var b strings.Builder
	for rest := strings.TrimRight(line, "\r\n"); rest != ""; {
		n := strings.IndexByte(rest, '\x1b')
		if n < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:n])
		rest = rest[n:]
		rest = rest[max(1, escapeSequence(rest)):]
	}
	shown := b.String()
	return Clean(shown[strings.LastIndexByte(strings.TrimRight(shown, "\r"), '\r')+1:])
}

// escapeSequence is the length of the control sequence, the control string or the other
// escape sequence (ECMA-48, sections 5.4 and 5.6; ECMA-35, section 13.2) that s begins
// with, else 0.
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
		if s[i] >= 0x30 {
			return i + 1
		}
	}
	return 0
}

// controlString is the length of a control string, such as the title of a window; all of
// s where it does not end there.
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
