// Package find owns finding a block of lines in a text: the same lines, or lines that are the same
// with something left aside. It gives all places where a block fits best, and those where it fits
// less well, each with its line and with what was left aside. Which ways to compare count, and what
// several places mean, is for the format to say that the block comes from.
package find

import (
	"slices"
	"strings"
)

// Block is lines to look for.
type Block struct {
	Lines []string
	// Margin are the blanks that all lines of an edit begin with, for [Indented].
	Margin string
}

// Place is where a block is.
type Place struct {
	First ID // its first line
	Way   Way
	// Offset is what stands before each line of the text, and not before that of the block without
	// its margin, where Way is [Indented].
	Offset string
}

// Few is up to how many places are found, one more than are worth telling with their lines and the
// one that an edit is applied at.
const Few = 4

// Find looks for a block at or below a line. It tries the ways in their order. fit has the places of
// the first way that fits anywhere, others those of later ways and [Parted] ones; a few of each, from the top. Once lines
// have come into the text, from has to be 0.
//
// Both are empty where nothing is to be found, and where [Seeker.GaveUp].
func (t *Text) Find(b Block, from ID, ways ...Way) (fit, others []Place) {
	if len(b.Lines) == 0 || len(b.Lines) > t.there {
		return nil, nil
	}
	keys := make([]int32, len(b.Lines))
	rarest := 0
	for i, line := range b.Lines {
		keys[i] = t.seeker.keys[key(line)]
		if t.count[keys[i]] < t.count[keys[rarest]] {
			rarest = i
		}
	}
	t.seeker.steps -= len(keys) + 16
	at := t.sites(keys[rarest])
	next, _ := slices.BinarySearch(at, from+ID(rarest))
	for _, id := range at[next:] {
		if t.seeker.steps--; t.seeker.steps < 0 {
			return nil, nil
		}
		first, more, ok := t.around(keys, rarest, id)
		if !ok {
			continue
		}
		place, ok := Place{First: first, Way: Parted}, true
		if !more {
			place, ok = t.fits(b, first, ways)
		}
		switch {
		case !ok:
		case more:
			others = append(others, place)
		case len(fit) == 0 || place.Way == fit[0].Way:
			if fit = append(fit, place); len(fit) == Few && place.Way == ways[0] {
				return fit, others
			}
		case slices.Index(ways, place.Way) < slices.Index(ways, fit[0].Way):
			fit, others = []Place{place}, append(others, fit...)
		default:
			others = append(others, place)
		}
		fit, others = fit[:min(len(fit), Few)], others[:min(len(others), Few)]
	}
	return fit, others
}

// around reports whether lines with these keys stand around one of them, where the first is, and
// whether one more line stands between them.
func (t *Text) around(keys []int32, at int, id ID) (first ID, more, ok bool) {
	if t.lines[id].gone {
		return 0, false, false
	}
	passed := false
	along := func(from ID, key int32, step func(ID) ID) ID {
		t.seeker.steps--
		if from = step(from); from != 0 && t.of[from] != key && !passed {
			passed, from = true, step(from)
		}
		if t.of[from] != key {
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

// fits finds the first way in which a block fits a place.
func (t *Text) fits(b Block, first ID, ways []Way) (Place, bool) {
	for _, way := range ways {
		p := Place{First: first, Way: way}
		if t.seeker.steps -= len(b.Lines); t.equal(b, &p) {
			return p, true
		}
	}
	return Place{}, false
}

// equal compares a block with the lines at a place, and finds the offset of these.
func (t *Text) equal(b Block, p *Place) bool {
	known := false
	for i, id := 0, p.First; i < len(b.Lines); i, id = i+1, t.lines[id].next {
		have, want := t.lines[id].text, b.Lines[i]
		if p.Way != Indented {
			if have != want && (p.Way == Exact || p.Way.Normal(have) != p.Way.Normal(want)) {
				return false
			}
			continue
		}
		have, want = Trailing.Normal(have), Trailing.Normal(want)
		if have == "" {
			continue
		}
		offset, ok := strings.CutSuffix(have, strings.TrimPrefix(want, b.Margin))
		if !ok || known && offset != p.Offset {
			return false
		}
		p.Offset, known = offset, true
	}
	return known || p.Way != Indented
}
