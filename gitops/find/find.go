// Package find searches for a block of lines in a text, exactly or with tolerances. It returns the
// best places and less exact ones, each with its first line and tolerance. Callers decide which
// tolerances apply, and what several places mean.
package find

import (
	"slices"
	"strings"
)

// Block is a list of lines to search for.
type Block struct {
	Lines []string
	// Margin is the indentation that all lines of an edit have in common. [Indented] needs it.
	Margin string
}

// Place is a match of a block.
type Place struct {
	FirstLine ID // its first line
	Tolerance Tolerance
	// Offset is the indentation that the text has in place of Margin, for [Indented].
	Offset string
}

// MaxPlaces is the largest number of places returned: one for the edit, two for a message, and one
// that shows that there are more.
const MaxPlaces = 4

// Find searches for a block from a line downwards. It compares with ways in their order. fit are
// the places that the first successful way finds. others are the places of later ways, and
// [ExtraLine] ones. Each lists the first MaxPlaces. If lines were inserted into the text,
// from must be 0.
//
// Both are empty if nothing matches, and after [Seeker.OutOfSteps].
func (t *Text) Find(b Block, from ID, ways ...Tolerance) (fit, others []Place) {
	if len(b.Lines) == 0 || len(b.Lines) > t.lineCount {
		return nil, nil
	}
	keys := make([]int32, len(b.Lines))
	rarest := 0
	for i, line := range b.Lines {
		keys[i] = t.seeker.keys[key(line)]
		if t.liveCount[keys[i]] < t.liveCount[keys[rarest]] {
			rarest = i
		}
	}
	t.seeker.steps -= len(keys) + 16
	at := t.linesOf(keys[rarest])
	next, _ := slices.BinarySearch(at, from+ID(rarest))
	for _, id := range at[next:] {
		if t.seeker.steps--; t.seeker.steps < 0 {
			return nil, nil
		}
		first, more, ok := t.around(keys, rarest, id)
		if !ok {
			continue
		}
		place, ok := Place{FirstLine: first, Tolerance: ExtraLine}, true
		if !more {
			place, ok = t.firstFit(b, first, ways)
		}
		switch {
		case !ok:
		case more:
			others = append(others, place)
		case len(fit) == 0 || place.Tolerance == fit[0].Tolerance:
			if fit = append(fit, place); len(fit) == MaxPlaces && place.Tolerance == ways[0] {
				return fit, others
			}
		case slices.Index(ways, place.Tolerance) < slices.Index(ways, fit[0].Tolerance):
			fit, others = []Place{place}, append(others, fit...)
		default:
			others = append(others, place)
		}
		fit, others = fit[:min(len(fit), MaxPlaces)], others[:min(len(others), MaxPlaces)]
	}
	return fit, others
}

// around looks for lines with the given keys, of which line id has keys[at]. It returns the first
// line, and whether one additional line is among them.
func (t *Text) around(keys []int32, at int, id ID) (first ID, more, ok bool) {
	if t.lines[id].deleted {
		return 0, false, false
	}
	passed := false
	along := func(from ID, key int32, step func(ID) ID) ID {
		t.seeker.steps--
		if from = step(from); from != 0 && t.lines[from].key != key && !passed {
			passed, from = true, step(from)
		}
		if t.lines[from].key != key {
			return 0
		}
		return from
	}
	first = id
	for i := at - 1; i >= 0 && first != 0; i-- {
		first = along(first, keys[i], t.Prev)
	}
	for i := at + 1; i < len(keys) && id != 0; i++ {
		id = along(id, keys[i], t.Next)
	}
	return first, passed, first != 0 && id != 0
}

// firstFit returns the place with the first way in which the block equals the lines from first on.
func (t *Text) firstFit(b Block, first ID, ways []Tolerance) (Place, bool) {
	for _, way := range ways {
		p := Place{FirstLine: first, Tolerance: way}
		if t.seeker.steps -= len(b.Lines); t.equal(b, &p) {
			return p, true
		}
	}
	return Place{}, false
}

// equal compares a block with the lines at a place. For [Indented] it also sets the offset of p.
func (t *Text) equal(b Block, p *Place) bool {
	known := false
	for i, id := 0, p.FirstLine; i < len(b.Lines); i, id = i+1, t.lines[id].next {
		have, want := t.lines[id].text, b.Lines[i]
		if p.Tolerance != Indented {
			if have != want && (p.Tolerance == Exact || p.Tolerance.Normal(have) != p.Tolerance.Normal(want)) {
				return false
			}
			continue
		}
		have, want = TrimmedTrailing.Normal(have), TrimmedTrailing.Normal(want)
		if have == "" {
			continue
		}
		offset, ok := strings.CutSuffix(have, strings.TrimPrefix(want, b.Margin))
		if !ok || known && offset != p.Offset {
			return false
		}
		p.Offset, known = offset, true
	}
	return known || p.Tolerance != Indented
}
