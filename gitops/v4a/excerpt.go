package v4a

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	shownLines = 8   // of a hunk in an error
	shownBytes = 160 // of a line in an error
	shownLead  = 40  // of those, before what the error is about
)

// excerpt renders the first lines of an expectation.
func excerpt(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i == shownLines {
			fmt.Fprintf(&b, "… %d more lines\n", len(lines)-i)
			break
		}
		b.WriteString("-" + clip(l) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip shortens a line for an error and makes it valid UTF-8.
func clip(line string) string { return clipAround(line, 0) }

// clipAround shortens a line to what stands around a byte of it.
func clipAround(line string, at int) string {
	start, end := 0, len(line)
	if len(line) > shownBytes {
		start = runeStart(line, min(max(at-shownLead, 0), len(line)-shownBytes))
		end = runeStart(line, start+shownBytes)
	}
	shown := strings.ToValidUTF8(line[start:end], "\uFFFD")
	if start > 0 {
		shown = "…" + shown
	}
	if end < len(line) {
		shown += "…"
	}
	return shown
}

// runeStart returns where the character that holds a byte starts.
func runeStart(line string, at int) int {
	for i := at; i > at-utf8.UTFMax && i > 0 && i < len(line); i-- {
		if utf8.RuneStart(line[i]) {
			return i
		}
	}
	return at
}

// divergence returns where two lines stop being the same to the loosest way of
// comparing them.
func divergence(a, b string) (inA, inB int) {
	inA, inB = indentation(a), indentation(b)
	for inA < len(a) && inB < len(b) {
		ra, sizeA := utf8.DecodeRuneInString(a[inA:])
		rb, sizeB := utf8.DecodeRuneInString(b[inB:])
		if foldRune(ra) != foldRune(rb) || ra == utf8.RuneError && a[inA] != b[inB] {
			break
		}
		inA, inB = inA+sizeA, inB+sizeB
	}
	return inA, inB
}

func indentation(line string) int {
	return len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
}
