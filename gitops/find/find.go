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

// Find searches for a block from a line downwards, in several ways, the strictest first. fit are
// the places that the first successful way finds. others are the places of later ways, and
// [ExtraLine] ones. Each lists the first MaxPlaces. If lines were inserted into the text,
// from must be 0.
//
// Both are empty if nothing matches, and after [Seeker.OutOfSteps].
func (t *Text) Find(b Block, from ID, ways ...Tolerance) (fit, others []Place) {
	if len(b.Lines) == 0 || len(b.Lines) > t.lineCount {
		return nil, nil
	}
	keys, rarest := t.keysOf(b)
	t.seeker.steps -= len(keys) + 16
	at := t.linesOf(keys[rarest])
	next, _ := slices.BinarySearch(at, from+ID(rarest))
	for _, id := range at[next:] {
		if t.seeker.steps--; t.seeker.steps < 0 {
			return nil, nil
		}
		place, ok := t.placeAround(b, keys, rarest, id, ways)
		if !ok {
			continue
		}
		switch {
		case place.Tolerance == ExtraLine:
			others = append(others, place)
		case len(fit) == 0 || place.Tolerance == fit[0].Tolerance:
			fit = append(fit, place)
		case slices.Index(ways, place.Tolerance) < slices.Index(ways, fit[0].Tolerance): // a stricter way
			fit, others = []Place{place}, append(others, fit...)
		default:
			others = append(others, place)
		}
		fit, others = fit[:min(len(fit), MaxPlaces)], others[:min(len(others), MaxPlaces)]
		if len(fit) == MaxPlaces && fit[0].Tolerance == ways[0] {
			break
		}
	}
	return fit, others
}

// keysOf returns the keys of a block's lines, and the index of the one that the fewest lines of the text have.
func (t *Text) keysOf(b Block) (keys []int32, rarest int) {
	keys = make([]int32, len(b.Lines))
	for i, line := range b.Lines {
		keys[i] = t.seeker.keys[key(line)]
		if t.liveCount[keys[i]] < t.liveCount[keys[rarest]] {
			rarest = i
		}
	}
	return keys, rarest
}

// placeAround returns the place of a block whose line number at is the text's line id. keys are those of the block's
// lines. It returns false if the lines around id do not fit.
func (t *Text) placeAround(b Block, keys []int32, at int, id ID, ways []Tolerance) (Place, bool) {
	first, hasExtraLine, ok := t.findAround(keys, at, id)
	switch {
	case !ok:
		return Place{}, false
	case hasExtraLine:
		return Place{FirstLine: first, Tolerance: ExtraLine}, true
	}
	return t.firstFit(b, first, ways)
}

// findAround looks for successive lines with the given keys. Line id has keys[at]. It returns the first line.
// One additional line may be among them.
func (t *Text) findAround(keys []int32, at int, id ID) (first ID, hasExtraLine, ok bool) {
	if t.lines[id].deleted {
		return 0, false, false
	}
	along := func(from ID, key int32, step func(ID) ID) ID {
		t.seeker.steps--
		if from = step(from); from != 0 && t.lines[from].key != key && !hasExtraLine {
			hasExtraLine, from = true, step(from)
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
	return first, hasExtraLine, first != 0 && id != 0
}

// firstFit returns the place with the first way in which the block equals the lines from first on.
func (t *Text) firstFit(b Block, first ID, ways []Tolerance) (Place, bool) {
	for _, way := range ways {
		p := Place{FirstLine: first, Tolerance: way}
		if t.seeker.steps -= len(b.Lines); t.matchesAt(b, &p) {
			return p, true
		}
	}
	return Place{}, false
}

// matchesAt reports whether a block fits the lines at a place in the way of the place. For [Indented] it also sets
// the offset of p.
func (t *Text) matchesAt(b Block, p *Place) bool {
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
