package v4a

import (
	"context"
	"slices"
	"strings"
)

// manySections is how many sections for one file in a row are worth an index of
// the file, to place them without making the text that each leaves behind.
const manySections = 8

// Updated applies sections that all update the file which has this content, one
// after the other. The notes tell who wrote the patch what to look at although
// it fits, a sentence each. An error is a [*MatchError] or that of ctx.
func (c *Content) Updated(ctx context.Context, sections []Section) (*Content, []string, error) {
	var notes []string
	alone := 0 // how many sections are placed one by one before several are tried together again
	for ; len(sections) > 0; alone-- {
		done := 0
		if alone <= 0 && len(sections) >= manySections && isPlain(c.text) {
			c, done = c.updatedTogether(ctx, sections)
			if done < manySections {
				alone = manySections + 1 // this round counts
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if done == 0 {
			updated, said, err := c.updatedAlone(ctx, &sections[0])
			if err != nil {
				return nil, nil, err
			}
			c, notes, done = updated, append(notes, said...), 1
		}
		sections = sections[done:]
	}
	return c, notes, nil
}

func (c *Content) updatedAlone(ctx context.Context, s *Section) (*Content, []string, error) {
	t := newText(c.text)
	if s.bare {
		t.splitBare(s.ending)
	}
	placed, notes, err := place(ctx, t, s)
	if err != nil {
		return nil, nil, err
	}
	return c.edited(edits(t, placed, s.bare)), notes, nil
}

// updatedTogether applies the first sections that do not depend on each other,
// and returns how many; none when something is wrong, which applying them one by
// one then shows. None of them is of a bare diff, which has one section.
func (c *Content) updatedTogether(ctx context.Context, sections []Section) (*Content, int) {
	t := newText(c.text)
	f := newFinder(ctx, t)
	j := &jointPlacer{finder: f, near: map[int]bool{}, added: map[string]bool{}, pairs: map[[2]string]bool{}}
	placers := make([]*placer, len(sections))
	for i := range sections {
		placers[i] = newPlacer(f, &sections[i])
	}
	f.index(exact)
	var placed []placement
	done := 0
	for _, pl := range placers {
		of, ok := j.place(pl)
		if !ok {
			break
		}
		for _, p := range of {
			j.note(p)
		}
		placed = append(placed, of...)
		done++
	}
	slices.SortStableFunc(placed, func(a, b placement) int { return a.at - b.at })
	return c.edited(edits(t, placed, false)), done
}

// isPlain reports whether lines stay lines wherever others go or come: a CR alone
// could end up before a LF. A byte order mark may go, too.
func isPlain(text string) bool {
	return strings.Count(text, "\r") == strings.Count(text, "\r\n") && !strings.HasPrefix(text, byteOrderMark)
}

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
