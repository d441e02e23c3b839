package v4a

import (
	"slices"
	"strings"
)

// jointPlacer places sections in a text that none of them has changed yet, as long as
// each finds there what it would find after the ones before it. That is so when
// its lines stand in the text byte for byte and away from earlier changes, and
// when no earlier change can have made an equal run of lines: one that was not
// there before has lines next to each other that were not, or an added line.
type jointPlacer struct {
	*finder
	near  map[int]bool       // the lines that earlier hunks touch
	added map[string]bool    // the lines that they add
	pairs map[[2]string]bool // the lines that they bring next to each other
}

func (j *jointPlacer) place(pl *placer) ([]placement, bool) {
	var placed []placement
	cursor := 0
	for i, s := range pl.sought {
		for _, n := range s.contexts {
			at, ok := j.find(n, cursor)
			if !ok || j.near[at] {
				return nil, false
			}
			cursor = at + 1
		}
		at, ok := j.find(s.old, cursor)
		h := &pl.section.Hunks[i]
		if !ok || h.EndOfFile || !h.addsPlain() || !j.clear(at, at+len(s.old.lines)) {
			return nil, false
		}
		placed = append(placed, placement{at, h.Lines})
		cursor = at + len(s.old.lines)
	}
	return placed, true
}

// addsPlain reports whether each added line is one in the file as well.
func (h *Hunk) addsPlain() bool {
	return !slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Kind == Insert && strings.Contains(l.Text, "\r") })
}

// find looks for lines that no earlier change can have brought about.
func (j *jointPlacer) find(n *needle, from int) (int, bool) {
	if len(n.lines) == 0 || (len(n.lines) == 1 && j.added[n.lines[0]]) {
		return 0, false
	}
	for i := 1; i < len(n.lines); i++ {
		if j.pairs[[2]string{n.lines[i-1], n.lines[i]}] {
			return 0, false
		}
	}
	switch span := n.spans[exact]; {
	case span.last < from:
		return 0, false
	case span.first >= from:
		return span.first, true
	}
	return j.scan(n, exact, from)
}

// clear reports whether lines are away from earlier changes and from both ends
// of the text, which decide on endings.
func (j *jointPlacer) clear(from, to int) bool {
	if from == 0 || to == j.text.lines() {
		return false
	}
	for i := from - 1; i <= to; i++ {
		if j.near[i] {
			return false
		}
	}
	return true
}

func (j *jointPlacer) note(p placement) {
	at, last, parted := p.at, j.text.line(p.at-1), false
	next := func(line string, isNew bool) {
		if isNew || parted {
			j.pairs[[2]string{last, line}] = true
		}
		last, parted = line, isNew
	}
	for _, l := range p.lines {
		if l.Kind == Insert {
			j.added[l.Text] = true
			next(l.Text, true)
			continue
		}
		if l.Kind == Remove {
			parted = true
		} else {
			next(j.text.line(at), false)
		}
		j.near[at] = true
		at++
	}
	next(j.text.line(at), false)
}
