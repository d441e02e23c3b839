package body

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// page is Markdown of limited length. A part is added completely or not at all, so no fence or
// element is cut.
type page struct {
	strings.Builder
	remainingUnits int  // in UTF-16 code units
	maxBlockUnits  int  // maximum of a block; 0 means the block's own
	unlimited      bool // everything is shown
}

// addIfFits adds s if there is space. It reports whether it did.
func (p *page) addIfFits(s string) bool {
	units := markdown.Units(s)
	if units > p.remainingUnits {
		return false
	}
	p.remainingUnits -= units
	p.WriteString(s)
	return true
}

// section is a part of a page that is shown row by row, within limits.
type section struct {
	head           string   // text before the first row
	rows           []string // each of whole lines
	document.Limit          // with 0 for all
}

// addSection adds as many rows of a section as fit in its limits, and says how many are left out. A
// section is not added if it has no row or no space for its head. It reports whether the section
// was added.
func (p *page) addSection(s section) bool {
	part := page{remainingUnits: p.remainingUnits}
	if s.MaxUnits > 0 {
		part.remainingUnits = min(part.remainingUnits, s.MaxUnits)
	}
	reserve := markdown.Units(s.moreLine(len(s.rows)))
	part.remainingUnits -= reserve
	if len(s.rows) == 0 || part.remainingUnits < 0 || !part.addIfFits(s.head) {
		return false
	}
	shown := 0
	for shown < len(s.rows) && (s.MaxRows == 0 || shown < s.MaxRows) && part.addIfFits(s.rows[shown]) {
		shown++
	}
	part.remainingUnits += reserve
	if shown < len(s.rows) {
		part.addIfFits(s.moreLine(len(s.rows) - shown))
	}
	return p.addIfFits(part.String())
}

// rowsOf returns a row for each element.
func rowsOf[T any](all []T, row func(T) string) (rows []string) {
	for _, one := range all {
		rows = append(rows, row(one))
	}
	return rows
}

// moreLine returns a line with the number of omitted rows.
func (s section) moreLine(omitted int) string {
	return "\n… and " + transcript.CountNoun(omitted, "more "+s.Noun) + ".\n"
}

// CommentMark is the first line of each comment that continues a transcript. By this line and the
// author, comments of earlier runs are recognised.
const CommentMark = "<!-- agent-ci: transcript -->"

// comments returns the pages after the first one as comments, each with a heading.
func comments(v *transcript.View, pages []string, end ending) (all []string) {
	for i, p := range pages[1:] {
		part := i + 2 // the body is part 1
		text := commentHead(v, part, len(pages)) + p
		if part == len(pages) && end.hidden > 0 {
			text += "\n" + sections.DescribeOmitted(end.hidden) + "\n"
		}
		all = append(all, text)
	}
	return all
}

// commentHead returns the first lines of a comment that continues a transcript.
func commentHead(v *transcript.View, part, parts int) string {
	return fmt.Sprintf("%s\n**Transcript of run %s, part %d of %d**\n\n", CommentMark, codeField(v.Started.RunID), part, parts)
}

// commentFrameUnits returns the length of a comment's text besides its page, in UTF-16 units.
func commentFrameUnits(v *transcript.View) int {
	parts := 1 + MaxComments
	return markdown.Units(commentHead(v, parts, parts) + "\n" + sections.DescribeOmitted(v.Calls) + "\n")
}
