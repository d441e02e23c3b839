// Package merge merges texts three ways, line by line (diff3): what one side
// changed of the base is taken, and what both changed differently is a
// conflict. It owns how lines are matched. It knows nothing of git, files and
// modes.
package merge

import (
	"slices"
	"strings"
)

// Lines merges what two sides made of base. Changes of the two that overlap or
// touch one another conflict, unless they are the same; ok is false then, and
// the text is of no use. Line ends are part of a line: a file without a last
// newline stays one.
func Lines(base, ours, theirs string) (merged string, ok bool) {
	switch {
	case ours == theirs, theirs == base:
		return ours, true
	case ours == base:
		return theirs, true
	}
	b, a, z := split(base), split(ours), split(theirs)
	m := merger{base: b, sides: [2]side{{text: a, hunks: diff(b, a)}, {text: z, hunks: diff(b, z)}}}
	return m.run()
}

func split(text string) []string { return slices.Collect(strings.Lines(text)) }

// hunk says that the lines [base0,base1) of the base are [new0,new1) of a side.
type hunk struct{ base0, base1, new0, new1 int }

// side is one of the two, with the hunks that are not dealt with yet.
type side struct {
	text  []string
	hunks []hunk
}

type merger struct {
	base  []string
	sides [2]side
	at    int // lines of the base that are dealt with
	out   strings.Builder
}

func (m *merger) run() (string, bool) {
	for len(m.sides[0].hunks)+len(m.sides[1].hunks) > 0 {
		if !m.next() {
			return "", false
		}
	}
	m.write(m.base[m.at:])
	return m.out.String(), true
}

// next deals with the first hunk that is left and with all that overlap or
// touch it.
func (m *merger) next() bool {
	low, high := m.first(), -1
	var taken [2][]hunk
	for grew := true; grew; {
		grew = false
		for i := range m.sides {
			s := &m.sides[i]
			for len(s.hunks) > 0 && s.hunks[0].base0 <= max(high, low) {
				taken[i] = append(taken[i], s.hunks[0])
				high = max(high, s.hunks[0].base1)
				s.hunks, grew = s.hunks[1:], true
			}
		}
	}
	m.write(m.base[m.at:low])
	m.at = high
	ours := m.sides[0].region(taken[0], low, high)
	theirs := m.sides[1].region(taken[1], low, high)
	switch {
	case len(taken[1]) == 0:
		m.write(ours)
	case len(taken[0]) == 0, slices.Equal(ours, theirs):
		m.write(theirs)
	default:
		return false
	}
	return true
}

// first is where the first hunk that is left begins in the base.
func (m *merger) first() int {
	first := len(m.base)
	for _, s := range m.sides {
		if len(s.hunks) > 0 {
			first = min(first, s.hunks[0].base0)
		}
	}
	return first
}

// region is what a side has in place of the lines [low,high) of the base, which
// hold all of hunks.
func (s *side) region(hunks []hunk, low, high int) []string {
	if len(hunks) == 0 {
		return nil // never used: the other side is taken
	}
	first, last := hunks[0], hunks[len(hunks)-1]
	return s.text[first.new0-(first.base0-low) : last.new1+(high-last.base1)]
}

func (m *merger) write(lines []string) {
	for _, line := range lines {
		m.out.WriteString(line)
	}
}
