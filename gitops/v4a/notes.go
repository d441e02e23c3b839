package v4a

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// loose tells of a hunk that adds lines where the lines around them fit only
// with something left aside, since what is added may lack it as well. Blanks at
// the ends of lines are of no account.
func (p placement) loose(t *text) string {
	if !p.addsWords() {
		return ""
	}
	at := p.at
	for _, l := range p.lines {
		if l.Kind == Insert {
			continue
		}
		if aside := leftAside(t.line(at), l.Text); aside != "" {
			return fmt.Sprintf("a hunk fits line %d only with %s left aside; what it adds stands as the patch has it, so look at that.", at+1, aside)
		}
		at++
	}
	return ""
}

func (p placement) addsWords() bool {
	return slices.ContainsFunc(p.lines, func(l Line) bool { return l.Kind == Insert && strings.TrimSpace(l.Text) != "" })
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

// fewHunks is in how many hunks of a section each is looked for a second time:
// that costs the rest of the file for each.
const fewHunks = 8

// ambiguous tells of hunks which start at those lines and fit further below too,
// where no other hunk belongs, while no "@@" line says which place is meant.
func (p *placer) ambiguous(starts []int) []string {
	if len(starts) > fewHunks {
		return nil
	}
	var notes []string
	for i, at := range starts {
		h, old := &p.section.Hunks[i], p.sought[i].old
		if len(h.Context) > 0 || h.EndOfFile || len(old.lines) == 0 {
			continue
		}
		if again, ok := p.scan(old, exact, at+1); ok && !slices.Contains(starts, again) {
			notes = append(notes, fmt.Sprintf(`a hunk without an "@@" line of its own fits line %d and line %d; the first was changed.`, at+1, again+1))
		}
	}
	return notes
}
