package progress

import (
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"
)

// maxMarks is how many combining marks in a row are shown on one character.
const maxMarks = 4

// cellsOf returns how many terminal cells a character takes (Unicode Standard Annex #11).
func cellsOf(r rune) int {
	switch kind := eastasian.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cellCount returns how many terminal cells a text takes. The text must come from Printable.
func cellCount(text string) (cells int) {
	for _, r := range text {
		cells += cellsOf(r)
	}
	return cells
}

// fitWidth shortens a text to a number of terminal cells. A shortened text ends in an ellipsis.
func fitWidth(text string, cells int) string {
	if cells <= 0 {
		return ""
	}
	room := cells
	if cellCount(text) > cells {
		room--
	}
	var cut strings.Builder
	marks := 0 // combining marks after the last character
	for _, r := range text {
		n := cellsOf(r)
		marks++
		if n > 0 {
			marks = 0
		}
		if n > room {
			break
		}
		room -= n
		if marks <= maxMarks {
			cut.WriteRune(r)
		}
	}
	if cellCount(text) > cells {
		cut.WriteRune('…')
	}
	return cut.String()
}
