package body

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// page is Markdown of limited length. What is put on it is put whole or not at
// all, so that nothing is ever cut within a fence or an element.
type page struct {
	strings.Builder
	left int // UTF-16 code units
}

// put adds s if there is room for it.
func (p *page) put(s string) bool {
	units := markdown.Units(s)
	if units > p.left {
		return false
	}
	p.left -= units
	p.WriteString(s)
	return true
}

// section is a part of a page that is shown row by row, as far as there is room.
type section struct {
	head  string   // before the first row
	rows  []string // each whole lines
	most  int      // rows shown; 0 for all
	share int      // UTF-16 code units of the page that it may take; 0 for all
	more  string   // what a row is called where some are left out: "file"
}

// section adds as many of a section's rows as fit in its share, and says how
// many there are more. A section without a row, or without room for one, is
// left out.
func (p *page) section(s section) {
	part := page{left: p.left}
	if s.share > 0 {
		part.left = min(part.left, s.share)
	}
	reserve := markdown.Units(s.moreLine(len(s.rows)))
	part.left -= reserve
	if len(s.rows) == 0 || part.left < 0 || !part.put(s.head) {
		return
	}
	shown := 0
	for shown < len(s.rows) && (s.most == 0 || shown < s.most) && part.put(s.rows[shown]) {
		shown++
	}
	part.left += reserve
	if shown < len(s.rows) {
		part.put(s.moreLine(len(s.rows) - shown))
	}
	p.put(part.String())
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
