package find

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tolerance is one way to compare lines.
type Tolerance int

const (
	Exact           Tolerance = iota
	TrimmedTrailing           // blanks at the ends of lines do not count
	Indented                  // nor does it that all lines stand further in, or further out, by the same
	TrimmedBothEnds           // blanks at both ends of lines do not count
	FoldedUnicode             // and dashes, quotes and spaces of Unicode count as those of ASCII
	CollapsedSpaces           // blanks at both ends do not count, and others count as one
	ExtraLine                 // the text has one more line between those of the block, which may lack it
)

// String describes the tolerance, or is empty.
func (w Tolerance) String() string {
	return [...]string{
		"", "blanks at the ends of lines left aside", "another indentation", "indentation left aside",
		"the kind of its dashes, quotes or spaces left aside", "the blanks in its lines left aside", "one more line between them",
	}[w]
}

// Normal returns the compared part of a line. [Indented] compares whole blocks.
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

// key returns the same string for all lines that match in some way: the line in its loosest form. Most
// lines are plain and are that form already.
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
		c := line[i]
		if c < ' ' || c >= utf8.RuneSelf || c == ' ' && line[i+1] == ' ' {
			return false
		}
	}
	return true
}

// fold replaces Unicode dashes, quotes and spaces by ASCII.
func fold(line string) string {
	if !utf8.ValidString(line) {
		return line
	}
	return strings.Map(FoldRune, line)
}

// FoldRune returns the ASCII character for a Unicode dash, quote or space, and any other one unchanged.
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
