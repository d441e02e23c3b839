package clip

import (
	"strings"
	"unicode"
)

// Visible is text of strangers as a person would see it, in at most most bytes: without control
// characters other than line ends and tabs, and without those that show nothing, turn the
// direction of text or hide words in it.
func Visible(text string, most int) string {
	cut := len(text) > most
	if cut { // before the work on it: what is cut may be megabytes
		text = Start(text, most)
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u200c', r == '\u200d': // join and part letters, in many scripts
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), Hidden(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if cut {
		text += "…"
	}
	return text
}

// Hidden says of a letter or mark that it shows nothing: a row of such, as of selectors of variants,
// can hold words that a model reads and no person sees. What makes emoji of signs is none.
func Hidden(r rune) bool {
	return r != '\ufe0f' && unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
