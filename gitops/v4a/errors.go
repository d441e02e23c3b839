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
	Line    int    // line of the patch; "*** Begin Patch" is line 1
	Problem string // what is wrong and what belongs there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Problem)
}

// MatchError reports a hunk whose lines were not found at a permitted place.
type MatchError struct {
	file          string   // path as written in the patch
	hunk          int      // from 1
	patchLine     int      // line of the patch with the first line that does not match
	want          []string // the missing lines: an "@@" line or the hunk's old lines
	isContext     bool     // want is an "@@" line
	isAmbiguous   bool     // the lines are in several places, and nothing identifies one
	searchedBelow int      // the line of the file below which the search began; 0 for the whole file
	hint          string   // what is probably wrong, or ""
	nearestLine   int      // first line of the most similar place in the file, from 1, or 0
	diff          string   // that place: "-" for lines that the patch expects, "+" for lines of the file
}

// Error returns the report for the model, with the most similar place if there is one.
func (e *MatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: hunk %d (line %d of the patch) ", e.file, e.hunk, e.patchLine)
	switch {
	case e.isAmbiguous:
		b.WriteString("fits more than one place")
	case e.isContext:
		fmt.Fprintf(&b, "names a line that is not in the file%s: %q", e.searchStart(), clip.Bytes(e.want[0], maxShownBytes))
	default:
		fmt.Fprintf(&b, "expects lines that are not in the file%s", e.searchStart())
	}
	if e.hint != "" {
		b.WriteString("; " + e.hint)
	}
	if e.nearestLine == 0 {
		if !e.isContext && e.hint == "" {
			b.WriteString("; the file has nothing like them. Expected:\n" + Excerpt(e.want))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "\nnearest place: line %d (- expected by the patch, + in the file)\n%s", e.nearestLine, e.diff)
	return strings.TrimSuffix(b.String(), "\n")
}

// searchStart returns the message's part about the start of the search, or "" for the start of the file.
func (e *MatchError) searchStart() string {
	if e.searchedBelow == 0 {
		return ""
	}
	return fmt.Sprintf(" below line %d, where the hunk or \"@@\" line before it is", e.searchedBelow)
}

const (
	maxShownLines = 8   // of a hunk in an error
	maxShownBytes = 160 // of a line in an error
	maxShownLead  = 40  // bytes shown before the position of interest
)

// Excerpt formats the first expected lines, with "-" before each. It cuts long lines.
func Excerpt(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i == maxShownLines {
			fmt.Fprintf(&b, "… %d more lines\n", len(lines)-i)
			break
		}
		b.WriteString("-" + clipAround(l, 0) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clipAround cuts a long line to the surroundings of the byte at. It marks cuts with "…".
func clipAround(line string, at int) string {
	hidden := clip.Start(line, min(at-maxShownLead, len(line)-maxShownBytes))
	shown := strings.ToValidUTF8(clip.Bytes(line[len(hidden):], maxShownBytes), "\uFFFD")
	if hidden != "" {
		shown = clip.Mark + shown
	}
	return shown
}

// firstDifference returns the byte positions at which two lines first differ, after their indentation
// and with Unicode folded. An invalid byte equals only itself.
func firstDifference(a, b string) (inA, inB int) {
	inA, inB = indentation(a), indentation(b)
	for inA < len(a) && inB < len(b) {
		ra, sizeA := utf8.DecodeRuneInString(a[inA:])
		rb, sizeB := utf8.DecodeRuneInString(b[inB:])
		areInvalid := ra == utf8.RuneError && rb == utf8.RuneError
		if find.FoldRune(ra) != find.FoldRune(rb) || areInvalid && a[inA] != b[inB] {
			break
		}
		inA, inB = inA+sizeA, inB+sizeB
	}
	return inA, inB
}

// indentation returns how many bytes of blanks a line begins with.
func indentation(line string) int {
	return len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
}
