package body

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// page is Markdown of limited length. Parts are added completely or not at all, so no fence or
// element is ever cut.
type page struct {
	strings.Builder
	remainingUnits int  // UTF-16 code units
	share          int  // that a block may take at most; 0 for what the block says
	unlimited      bool // nothing is left out
}

// addIfFits adds s if there is room for it.
func (p *page) addIfFits(s string) bool {
	units := markdown.Units(s)
	if units > p.remainingUnits {
		return false
	}
	p.remainingUnits -= units
	p.WriteString(s)
	return true
}

// section is a part of a page shown row by row within the limit.
type section struct {
	head  string   // before the first row
	rows  []string // each whole lines
	most  int      // rows shown; 0 for all
	share int      // UTF-16 code units of the page that it may take; 0 for all
	more  string   // what a row is called where some are left out: "file"
}

// section adds as many of a section's rows as fit in its share, and says how
// many there are more. A section without a row, or without room for one, is
// left out. It reports whether the section was added.
func (p *page) section(s section) bool {
	part := page{remainingUnits: p.remainingUnits}
	if s.share > 0 {
		part.remainingUnits = min(part.remainingUnits, s.share)
	}
	reserve := markdown.Units(s.moreLine(len(s.rows)))
	part.remainingUnits -= reserve
	if len(s.rows) == 0 || part.remainingUnits < 0 || !part.addIfFits(s.head) {
		return false
	}
	shown := 0
	for shown < len(s.rows) && (s.most == 0 || shown < s.most) && part.addIfFits(s.rows[shown]) {
		shown++
	}
	part.remainingUnits += reserve
	if shown < len(s.rows) {
		part.addIfFits(s.moreLine(len(s.rows) - shown))
	}
	return p.addIfFits(part.String())
}

// rowsOf are the rows of a section about all of something.
func rowsOf[T any](all []T, row func(T) string) []string {
	var rows []string
	for _, one := range all {
		rows = append(rows, row(one))
	}
	return rows
}

func (s section) moreLine(left int) string {
	return "\n… and " + transcript.Count(left, "more "+s.more) + ".\n"
}

// CommentMark is the first line of each comment that continues a transcript. With the author, it
// identifies comments of earlier runs.
const CommentMark = "<!-- agent-ci: transcript -->"

// comments are the pages after the first, each with its heading.
func comments(v *transcript.View, pages []string, end ending) []string {
	var all []string
	for i, p := range pages[1:] {
		text := commentHead(v, i+2, len(pages)) + p
		if i+2 == len(pages) && end.hidden > 0 {
			text += "\n" + sections.DescribeOmitted(end.hidden) + "\n"
		}
		all = append(all, text)
	}
	return all
}

func commentHead(v *transcript.View, part, parts int) string {
	return fmt.Sprintf("%s\n**Transcript of run %s, part %d of %d**\n\n", CommentMark, code(v.Started.RunID), part, parts)
}

// commentFrame is the room for a comment's own text.
func commentFrame(v *transcript.View) int {
	parts := 1 + MaxComments
	return markdown.Units(commentHead(v, parts, parts) + "\n" + sections.DescribeOmitted(v.Calls) + "\n")
}
