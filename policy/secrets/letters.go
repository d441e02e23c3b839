package secrets

import "strings"

// letters holds the letters and digits of a text, in lower case, with their positions. It omits
// letters of escapes: `\x41`, `0x41`, `\u0041`, `\u{41}` and `&#x41;` yield 41, `\n` yields
// nothing.
type letters struct {
	text    string
	lower   []byte
	offsets []int32

	lastTraces map[*spelling]lastTrace
}

// lowerLetters maps letters and digits to lower case, and all other bytes to 0.
var lowerLetters = func() (table [256]byte) {
	for _, c := range []byte(digits + lower) {
		table[c] = c
	}
	for i := range len(upper) {
		table[upper[i]] = lower[i]
	}
	return table
}()

// load stores the letters and digits of text in lower case, with their offsets. It leaves out letters that
// encodings add: the 0x of hexadecimal numbers, and those of escapes after \ or &.
func (l *letters) load(text string) {
	if cap(l.lower) < len(text) {
		l.lower, l.offsets = make([]byte, len(text)), make([]int32, len(text))
	}
	all, at, n := l.lower[:len(text)], l.offsets[:len(text)], 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		folded := lowerLetters[c]
		if folded == 'x' && isHexNumber(text, i) {
			n-- // takes the 0 of 0x back
			continue
		}
		all[n], at[n] = folded, int32(i) // the next one overwrites it, unless it is a letter or a digit
		if folded != 0 {
			n++
		} else if c == '\\' || c == '&' {
			i += escapePrefixLength(text[i+1:])
		}
	}
	l.text, l.lower, l.offsets = text, all[:n], at[:n]
}

// isHexNumber reports whether at is the position of the x in a number like 0x41.
func isHexNumber(text string, at int) bool {
	if at == 0 || text[at-1] != '0' || at+2 >= len(text) || !hexBytes[text[at+1]] || !hexBytes[text[at+2]] {
		return false
	}
	startsWord := at == 1 || lowerLetters[text[at-2]] == 0
	endsWord := at+3 == len(text) || lowerLetters[text[at+3]] == 0
	return startsWord && endsWord
}

// escapePrefixLength returns the length of an escape's prefix after a backslash or an ampersand.
func escapePrefixLength(rest string) int {
	switch {
	case rest == "":
		return 0
	case strings.IndexByte("nrtx", rest[0]) >= 0:
		return 1
	case rest[0] == 'u' && strings.HasPrefix(rest[1:], "{"):
		return 1
	case rest[0] == 'u' || rest[0] == '\r' || rest[0] == '\n':
		return unicodeEscapeLength(rest)
	case strings.HasPrefix(rest, "#x"), strings.HasPrefix(rest, "#X"):
		return 2
	}
	return 0
}

// unicodeEscapeLength returns the length of u00 before two hexadecimal digits, or 0: 3 for "u002f", 0 for
// "u20ac". There may be line ends between the characters.
func unicodeEscapeLength(rest string) int {
	const form = "u00"
	found, end := 0, 0
	for i := 0; i < min(len(rest), 12); i++ {
		switch c := rest[i]; {
		case c == '\r' || c == '\n': // skipped
		case found < len(form) && c == form[found]:
			found, end = found+1, i+1
		case found >= len(form) && hexBytes[c]:
			if found++; found == len(form)+2 {
				return end
			}
		default:
			return 0
		}
	}
	return 0
}

// maxGap bounds the bytes between two letters of a value.
const maxGap = 200

// gapBefore returns the text between a letter and the one before. It reports false above maxGap.
func (l *letters) gapBefore(letter int) (gap string, ok bool) {
	from, to := l.offsets[letter-1]+1, l.offsets[letter]
	return l.text[from:to], to-from <= maxGap
}

// breaksLine reports whether a line ends in a gap, also by an escape: the only letters in a gap belong to
// escapes.
func breaksLine(gap string) bool { return strings.ContainsAny(gap, "\n\rnr") }
