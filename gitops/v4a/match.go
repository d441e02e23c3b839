package v4a

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pass is one way to compare a line of the file with a line of the patch. The
// whole rest of the file is searched in one pass before the next one starts.
type pass int

const (
	exact    pass = iota
	trailing      // blanks at the end do not count
	ends          // blanks at both ends do not count
	folded        // and Unicode punctuation counts as its ASCII look-alike
	passes
)

// normal returns what of a line counts in a pass.
func (p pass) normal(line string) string {
	switch p {
	case trailing:
		return strings.TrimRightFunc(line, unicode.IsSpace)
	case ends:
		return strings.TrimSpace(line)
	case folded:
		return fold(strings.TrimSpace(line))
	}
	return line
}

// fold replaces dashes, quotes and spaces by their ASCII look-alikes.
func fold(line string) string {
	if !utf8.ValidString(line) {
		return line
	}
	return strings.Map(foldRune, line)
}

func foldRune(r rune) rune {
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

// needle is a run of lines to look for.
type needle struct {
	lines []string
	spans [passes]span // where it occurs; filled by the index of a pass
}

// span holds the first line of a needle's first and last occurrence.
type span struct{ first, last int }

var nowhere = span{-1, -1}

// finder looks for the needles of sections in one text.
//
// A forward scan that finds its needle costs no more than the cursor moves, and
// the cursor only moves forward. A scan that fails would cost the rest of the
// file each time, so the first failure of a pass makes an index of that pass,
// which knows for all needles at once whether one lies ahead. The whole is
// linear in file plus patch, whatever repeats in either.
//
// When ended says so a search gives up, and what it returns means nothing.
type finder struct {
	text    *text
	ended   func() bool
	needles []*needle
	indexed [passes]bool
	borders []int // scratch
	wanted  []string
}

func newFinder(ctx context.Context, t *text) *finder {
	return &finder{text: t, ended: func() bool { return ctx.Err() != nil }}
}

// linesPerLook is how many lines are gone through between two looks at whether
// to go on.
const linesPerLook = 1 << 14

// giveUp looks now and then, at some lines, whether to go on.
func (f *finder) giveUp(line int) bool { return line%linesPerLook == 0 && f.ended() }

// seek returns the first line at or after from where the needle occurs.
func (f *finder) seek(n *needle, from int) (int, bool) {
	if len(n.lines) == 0 {
		return from, true
	}
	if len(n.lines) > f.text.lines()-from {
		return 0, false
	}
	for p := exact; p < passes; p++ {
		if f.indexed[p] && n.spans[p].last < from {
			continue
		}
		if at, ok := f.scan(n, p, from); ok {
			return at, true
		}
		f.index(p)
	}
	return 0, false
}

// at reports whether the needle occurs at a line. What matches in any pass matches
// in the last one.
func (f *finder) at(n *needle, line int) bool {
	if line < 0 || len(n.lines) > f.text.lines()-line {
		return false
	}
	for i, want := range n.lines {
		if !sameLine(f.text.line(line+i), want) {
			return false
		}
	}
	return true
}

// scan is Knuth, Morris and Pratt's search over lines.
func (f *finder) scan(n *needle, p pass, from int) (int, bool) {
	f.prepare(n, p)
	matched := 0
	for i := from; i < f.text.lines() && !f.giveUp(i); i++ {
		line := p.normal(f.text.line(i))
		for matched > 0 && line != f.wanted[matched] {
			matched = f.borders[matched-1]
		}
		if line == f.wanted[matched] {
			matched++
		}
		if matched == len(f.wanted) {
			return i - matched + 1, true
		}
	}
	return 0, false
}

// prepare fills wanted with the needle as it counts in a pass and borders with
// the length of the longest border of each of its prefixes.
func (f *finder) prepare(n *needle, p pass) {
	f.wanted, f.borders = f.wanted[:0], f.borders[:0]
	for _, line := range n.lines {
		f.wanted = append(f.wanted, p.normal(line))
	}
	f.borders = append(f.borders, 0)
	for i, k := 1, 0; i < len(f.wanted); i++ {
		for k > 0 && f.wanted[i] != f.wanted[k] {
			k = f.borders[k-1]
		}
		if f.wanted[i] == f.wanted[k] {
			k++
		}
		f.borders = append(f.borders, k)
	}
}
