package v4a

import (
	"fmt"
	"strings"
	"unicode"
)

// loose tells of a hunk that adds lines where the lines around them fit only
// with something left aside: what is added may lack it as well.
type loose struct {
	path  string // as the patch spells it
	line  int    // of the file, from 1, which the patch writes otherwise
	aside string // what was left aside
}

// noteLoose notes what was left aside to place a hunk in a text. Blanks at the
// ends of lines are of no account.
func (p *planner) noteLoose(t *text, hunk placement) {
	if !hunk.addsWords() {
		return
	}
	at := hunk.at
	for _, l := range hunk.lines {
		if l.Kind == Insert {
			continue
		}
		if aside := leftAside(t.line(at), l.Text); aside != "" {
			p.loose = append(p.loose, loose{p.section.Path, at + 1, aside})
			return
		}
		at++
	}
}

func (p placement) addsWords() bool {
	for _, l := range p.lines {
		if l.Kind == Insert && strings.TrimSpace(l.Text) != "" {
			return true
		}
	}
	return false
}

// leftAside is in what a line of the file and one of the patch differ that count
// as equal.
func leftAside(file, patch string) string {
	file = strings.TrimRightFunc(strings.TrimPrefix(file, byteOrderMark), unicode.IsSpace)
	patch = strings.TrimRightFunc(strings.TrimPrefix(patch, byteOrderMark), unicode.IsSpace)
	switch {
	case file == patch:
		return ""
	case strings.TrimSpace(file) == strings.TrimSpace(patch):
		return "indentation"
	}
	return "the kind of its dashes, quotes or spaces"
}

// mostNotes is how many hunks are told of.
const mostNotes = 10

// Notes tell who wrote the patch what to look at although it was applied, a line
// each; they are empty when there is nothing.
func (p *Plan) Notes() string {
	var b strings.Builder
	for _, l := range p.loose[:min(len(p.loose), mostNotes)] {
		fmt.Fprintf(&b, "Note: %s: a hunk fits line %d of the file only with %s left aside; what it adds stands as the patch has it, so look at that.\n",
			l.path, l.line, l.aside)
	}
	return b.String()
}
