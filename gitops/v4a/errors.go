package v4a

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/policy/clip"
)

// ParseError reports an invalid patch.
type ParseError struct {
	Line    int    // of the patch, from 1, "*** Begin Patch" being the first
	Problem string // what is wrong and what belongs there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Problem)
}

// MatchError reports a hunk whose lines were not found at a permitted place.
type MatchError struct {
	file      string   // as the patch spells it
	hunk      int      // from 1
	patchLine int      // of the first line that does not match where it should
	want      []string // what was looked for: an "@@" line or the hunk's old lines
	context   bool     // want is an "@@" line
	unclear   bool     // want is there more than once, and nothing says which is meant
	below     int      // the line of the file below which it was looked for; 0 is the whole file
	hint      string   // what is probably wrong, or empty
	near      int      // the line of the file, from 1, at which the place most like it starts, or 0
	diff      string   // of that place: "-" what the patch expects, "+" what the file has there
}

func (e *MatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: hunk %d (line %d of the patch) ", e.file, e.hunk, e.patchLine)
	switch {
	case e.unclear:
		b.WriteString("fits more than one place")
	case e.context:
		fmt.Fprintf(&b, "names a line that is not in the file%s: %q", e.where(), clip.Bytes(e.want[0], shownBytes))
	default:
		fmt.Fprintf(&b, "expects lines that are not in the file%s", e.where())
	}
	if e.hint != "" {
		b.WriteString("; " + e.hint)
	}
	if e.near == 0 {
		if !e.context && e.hint == "" {
			b.WriteString("; the file has nothing like them. Expected:\n" + Excerpt(e.want))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "\nnearest place: line %d (- expected by the patch, + in the file)\n%s", e.near, e.diff)
	return strings.TrimSuffix(b.String(), "\n")
}

func (e *MatchError) where() string {
	if e.below == 0 {
		return ""
	}
	return fmt.Sprintf(" below line %d, where the hunk or \"@@\" line before it is", e.below)
}

const (
	shownLines = 8   // of a hunk in an error
	shownBytes = 160 // of a line in an error
	shownLead  = 40  // of those, before what the error is about
)

// Excerpt renders the first lines of an expectation, long ones cut.
func Excerpt(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i == shownLines {
			fmt.Fprintf(&b, "… %d more lines\n", len(lines)-i)
			break
		}
		b.WriteString("-" + clipAround(l, 0) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clipAround shortens a line to the surroundings of a byte.
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

// runeStart returns the start of the character around a byte.
func runeStart(line string, at int) int {
	for i := at; i > at-utf8.UTFMax && i > 0 && i < len(line); i-- {
		if utf8.RuneStart(line[i]) {
			return i
		}
	}
	return at
}

// divergence returns the first difference of two lines in the loosest comparison.
func divergence(a, b string) (inA, inB int) {
	inA, inB = indentation(a), indentation(b)
	for inA < len(a) && inB < len(b) {
		ra, sizeA := utf8.DecodeRuneInString(a[inA:])
		rb, sizeB := utf8.DecodeRuneInString(b[inB:])
		if find.FoldRune(ra) != find.FoldRune(rb) || ra == utf8.RuneError && a[inA] != b[inB] {
			break
		}
		inA, inB = inA+sizeA, inB+sizeB
	}
	return inA, inB
}

func indentation(line string) int {
	return len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
}
