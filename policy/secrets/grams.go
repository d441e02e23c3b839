package secrets

import (
	"encoding/binary"
	"strings"
)

const (
	// fragmentOf is the least length of a value whose fragments are searched.
	fragmentOf = 20
	// minFragment is the least length of a fragment, and minOfLong that of one of a
	// long value, which has more in it that others have, too.
	minFragment = 12
	minOfLong   = 16
	long        = 512

	// step is the distance of the places in a text that are looked at. What is
	// searched has a gram at every offset below step, so none is missed: a form
	// has 4+step-1 bytes or more, a fragment 8+step-1.
	step         = 5
	formGram     = 4
	fragmentGram = 8
)

// grams find where in a text a known value may begin, without looking at every
// byte of it.
type grams struct {
	forms     places[gramPlace] // of 4 bytes at the beginning of each form
	fragments places[gramPlace] // of 8 bytes at each place of each value
}

// gramPlace is where in a form or a value a gram stands.
type gramPlace struct {
	text   string
	offset int
	name   string // of the value
	least  int    // the length of a fragment of the value
}

// filter says of most numbers that were not put in that they were not.
type filter [1 << 10]uint64

func (f *filter) bit(n uint64) (word, mask uint64) {
	h := n * 0x9E3779B97F4A7C15 >> 48
	return h >> 6, 1 << (h & 63)
}

func (f *filter) add(n uint64) {
	word, mask := f.bit(n)
	f[word] |= mask
}

func (f *filter) has(n uint64) bool {
	word, mask := f.bit(n)
	return f[word]&mask != 0
}

// places are what is searched, by the grams that it is found by. Most grams of a text
// end at the filter.
type places[P any] struct {
	filter filter
	of     map[uint64][]P
}

func (p *places[P]) add(gram uint64, place P) {
	if p.of == nil {
		p.of = map[uint64][]P{}
	}
	p.filter.add(gram)
	p.of[gram] = append(p.of[gram], place)
}

func (g *grams) addForm(text string) {
	for offset := range step {
		gram := binary.LittleEndian.Uint32([]byte(text[offset : offset+formGram]))
		g.forms.add(uint64(gram), gramPlace{text: text, offset: offset})
	}
}

// addFragments makes the fragments of a value findable, but for what is
// published of it.
func (g *grams) addFragments(v Value) {
	if len(v.Secret) < fragmentOf {
		return
	}
	from, to := core(v.Secret)
	text := v.Secret[from:to]
	least := leastFragment(v.Secret)
	if len(text) < least {
		return
	}
	for offset := 0; offset+fragmentGram <= len(text); offset++ {
		gram := binary.LittleEndian.Uint64([]byte(text[offset : offset+fragmentGram]))
		if len(g.fragments.of[gram]) < 4 { // a value that repeats itself needs no more
			g.fragments.add(gram, gramPlace{text, offset, v.Name, least})
		}
	}
}

func leastFragment(secret string) int {
	if len(secret) >= long {
		return minOfLong
	}
	return minFragment
}

// mayHoldForm says whether a form stands in text.
func (g *grams) mayHoldForm(text string) bool {
	for at := 0; at+formGram <= len(text); at += step {
		gram := uint64(text[at]) | uint64(text[at+1])<<8 | uint64(text[at+2])<<16 | uint64(text[at+3])<<24
		if !g.forms.filter.has(gram) {
			continue
		}
		for _, place := range g.forms.of[gram] {
			if start := at - place.offset; start >= 0 && strings.HasPrefix(text[start:], place.text) {
				return true
			}
		}
	}
	return false
}

// fragments adds to spans the parts of text that are fragments of values.
func (r *Redactor) fragments(text string, spans []span) []span {
	g := &r.grams
	if len(g.fragments.of) == 0 {
		return spans
	}
	for at := 0; at+fragmentGram <= len(text); at += step {
		gram := uint64(text[at]) | uint64(text[at+1])<<8 | uint64(text[at+2])<<16 | uint64(text[at+3])<<24 |
			uint64(text[at+4])<<32 | uint64(text[at+5])<<40 | uint64(text[at+6])<<48 | uint64(text[at+7])<<56
		if !g.fragments.filter.has(gram) {
			continue
		}
		longest := span{start: at, end: at}
		for _, place := range g.fragments.of[gram] {
			start, end := place.extent(text, at)
			if end-start >= place.least && end-start > longest.end-longest.start {
				longest = span{start, end, partMark(place.name)}
			}
		}
		if longest.end == at {
			continue
		}
		if r.stands == nil || !r.stands(text[longest.start:longest.end]) {
			spans = append(spans, longest)
		}
		at += (longest.end - at - 1) / step * step // the next look is in the first bytes behind it
	}
	return spans
}

// extent is the part of text around at that is the same as the value around
// the place.
func (p gramPlace) extent(text string, at int) (start, end int) {
	return at - len(commonEnd(text[:at], p.text[:p.offset])), at + len(commonStart(text[at:], p.text[p.offset:]))
}
