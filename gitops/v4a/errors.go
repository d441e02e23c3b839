package v4a

import (
	"fmt"
	"strings"
)

// ParseError is a patch that does not follow the format.
type ParseError struct {
	Line    int    // of the patch, from 1, "*** Begin Patch" being the first
	Problem string // what is wrong and what belongs there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Problem)
}

// MatchError is a hunk whose lines are not in the file where they may be.
type MatchError struct {
	file      string   // as the patch spells it
	hunk      int      // from 1
	patchLine int      // of the first line that does not match where it should
	want      []string // what was looked for: an "@@" line or the hunk's old lines
	context   bool     // want is an "@@" line
	below     int      // the line of the file below which it was looked for; 0 is the whole file
	hint      string   // what is probably wrong, or empty
	near      int      // the line of the file, from 1, at which the place most like it starts, or 0
	diff      string   // of that place: "-" what the patch expects, "+" what the file has there
}

func (e *MatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: hunk %d (line %d of the patch) ", e.file, e.hunk, e.patchLine)
	if e.context {
		fmt.Fprintf(&b, "names a line that is not in the file%s: %q", e.where(), clip(e.want[0]))
	} else {
		fmt.Fprintf(&b, "expects lines that are not in the file%s", e.where())
	}
	if e.hint != "" {
		b.WriteString("; " + e.hint)
	}
	if e.near == 0 {
		if !e.context && e.hint == "" {
			b.WriteString("; the file has nothing like them. Expected:\n" + excerpt(e.want))
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
