package find

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tolerance is a way to compare lines.
type Tolerance int

const (
	Exact           Tolerance = iota
	TrimmedTrailing           // ignores blanks at the end of a line
	Indented                  // like TrimmedTrailing, and all lines may have the same additional or missing indentation
	TrimmedBothEnds           // ignores blanks at both ends of a line
	FoldedUnicode             // like TrimmedBothEnds, and Unicode dashes, quotes and spaces equal ASCII ones
	CollapsedSpaces           // like TrimmedBothEnds, and several blanks equal one
	ExtraLine                 // the text has one additional line within the block
)

// String describes what the comparison ignores. It is "" for Exact.
func (w Tolerance) String() string {
	return [...]string{
		"", "blanks at the ends of lines left aside", "another indentation", "indentation left aside",
		"the kind of its dashes, quotes or spaces left aside", "the blanks in its lines left aside", "one more line between them",
	}[w]
}

// Normal returns a line in the form in which it is compared. [Indented] cannot be compared line by
// line.
func (w Tolerance) Normal(line string) string {
	switch w {
	case TrimmedTrailing:
		return strings.TrimRightFunc(line, unicode.IsSpace)
	case TrimmedBothEnds:
		return strings.TrimSpace(line)
	case FoldedUnicode:
		return fold(strings.TrimSpace(line))
	case CollapsedSpaces:
		return strings.Join(strings.Fields(line), " ")
	}
	return line
}

// key returns the line in its loosest form, which is the same for all lines that are equal in any
// way. Most lines already have that form.
func key(line string) string {
	line = strings.TrimSpace(line)
	if isPlain(line) {
		return line
	}
	return CollapsedSpaces.Normal(fold(line))
}

// isPlain reports whether a trimmed line has only ASCII characters and single spaces.
func isPlain(line string) bool {
	for i := range len(line) {
		if line[i] < ' ' || line[i] >= utf8.RuneSelf {
			return false
		}
	}
	return !strings.Contains(line, "  ")
}

// fold replaces Unicode dashes, quotes and spaces by ASCII ones.
func fold(line string) string {
	if !utf8.ValidString(line) {
		return line
	}
	return strings.Map(FoldRune, line)
}

// FoldRune returns the ASCII character for a Unicode dash, quote or space. It returns any other
// character unchanged.
func FoldRune(r rune) rune {
	switch {
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	case r == 0x00A0, r >= 0x2002 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return r
}
