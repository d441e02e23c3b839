package clip

import (
	"strings"
	"unicode"
)

// Visible returns foreign text as seen by people, up to maxBytes bytes: without control characters
// except line ends and tabs, and without characters that are invisible, reverse text or hide words.
func Visible(text string, maxBytes int) string {
	isCut := len(text) > maxBytes
	if isCut { // cut first, since text may have megabytes
		text = Start(text, maxBytes)
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u200c', r == '\u200d': // join and separate letters in many scripts
			return r
		case r == '\u2028', r == '\u2029', unicode.IsSpace(r) && unicode.IsControl(r): // such as a carriage return
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), IsInvisible(r):
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n"))
	text = strings.TrimSpace(text)
	if isCut {
		text += Mark
	}
	return text
}

// VisibleLine returns Visible on one line.
func VisibleLine(text string, maxBytes int) string {
	return strings.Join(strings.Fields(Visible(text, maxBytes)), " ")
}

// Name returns text with its ASCII letters and digits, and its characters in more. It replaces each other
// character by instead.
func Name(text, more string, instead rune) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(more, r) {
			return r
		}
		return instead
	}, text)
}

// IsInvisible reports whether r is an invisible letter or mark. A row of them, such as variation
// selectors, can hide words that only models read. It reports false for U+FE0F, which emoji contain.
func IsInvisible(r rune) bool {
	return r != '\ufe0f' && unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
