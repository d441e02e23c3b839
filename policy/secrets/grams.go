package secrets

import (
	"encoding/binary"
	"strings"
)

const (
	// minFragmentedValue is the shortest value with a search for fragments, in bytes.
	minFragmentedValue = 20
	// minFragment is the shortest fragment. minLongFragment is the shortest one of a long value, which
	// shares more with other texts.
	minFragment     = 12
	minLongFragment = 16
	longValueLength = 512

	// positionStep is the distance between examined positions in a text. Forms have at least 4+step-1
	// bytes and fragments 8+step-1, so one of their first step grams is at an examined position.
	positionStep = 5
	formGram     = 4
	fragmentGram = 8
)

// grams finds possible beginnings of known values without examining every byte.
type grams struct {
	forms     gramIndex[gramPlace] // of 4 bytes at the beginning of each form
	fragments gramIndex[gramPlace] // of 8 bytes at each place of each value
}

// gramPlace is the position of a gram in a form or value.
type gramPlace struct {
	text      string
	offset    int
	name      string // of the value
	minLength int    // the length of a fragment of the value
}

// filter is a Bloom filter: it rejects most numbers that were never added.
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

// gramIndex maps grams to searched values. The filter rejects most grams of a text.
type gramIndex[P any] struct {
	filter filter
	byGram map[uint64][]P
}

func (i *gramIndex[P]) add(gram uint64, place P) {
	if i.byGram == nil {
		i.byGram = map[uint64][]P{}
	}
	i.filter.add(gram)
	i.byGram[gram] = append(i.byGram[gram], place)
}

// gram4 returns four bytes of text as a number.
func gram4(text string, at int) uint64 {
	return uint64(binary.LittleEndian.Uint32([]byte(text[at : at+formGram])))
}

// gram8 returns eight bytes of text as a number.
func gram8(text string, at int) uint64 {
	return binary.LittleEndian.Uint64([]byte(text[at : at+fragmentGram]))
}

// addForm indexes the first grams of a form. One of them is at an examined position of a text that contains
// the form.
func (g *grams) addForm(text string) {
	for offset := range positionStep {
		g.forms.add(gram4(text, offset), gramPlace{text: text, offset: offset})
	}
}

// addFragments indexes the fragments of a value's secret part.
func (g *grams) addFragments(v Value) {
	if len(v.Secret) < minFragmentedValue {
		return
	}
	from, to := secretPart(v.Secret)
	text := v.Secret[from:to]
	least := minFragmentLength(v.Secret)
	if len(text) < least {
		return
	}
	for offset := 0; offset+fragmentGram <= len(text); offset++ {
		gram := gram8(text, offset)
		if len(g.fragments.byGram[gram]) < 4 { // a value that repeats itself needs few entries
			g.fragments.add(gram, gramPlace{text, offset, v.Name, least})
		}
	}
}

// minFragmentLength returns the length from which a part of secret counts as a fragment, in bytes.
func minFragmentLength(secret string) int {
	if len(secret) >= longValueLength {
		return minLongFragment
	}
	return minFragment
}

// hasForm reports whether a form is in text.
func (g *grams) hasForm(text string) bool {
	for at := 0; at+formGram <= len(text); at += positionStep {
		gram := gram4(text, at)
		if !g.forms.filter.has(gram) {
			continue
		}
		for _, place := range g.forms.byGram[gram] {
			if start := at - place.offset; start >= 0 && strings.HasPrefix(text[start:], place.text) {
				return true
			}
		}
	}
	return false
}

// appendFragments appends the spans of fragments of values in text, except public ones.
func (r *Redactor) appendFragments(text string, spans []span) []span {
	g := &r.grams
	if len(g.fragments.byGram) == 0 {
		return spans
	}
	for at := 0; at+fragmentGram <= len(text); at += positionStep {
		gram := gram8(text, at)
		if !g.fragments.filter.has(gram) {
			continue
		}
		longest := span{start: at, end: at}
		for _, place := range g.fragments.byGram[gram] {
			start, end := place.longestMatch(text, at)
			if end-start >= place.minLength && end-start > longest.end-longest.start {
				longest = span{start, end, partMark(place.name)}
			}
		}
		if longest.end == at {
			continue
		}
		if r.isPublic == nil || !r.isPublic(text[longest.start:longest.end]) {
			spans = append(spans, longest)
		}
		at += (longest.end - at - 1) / positionStep * positionStep // examine the first position after it next
	}
	return spans
}

// longestMatch returns the bounds of the longest match around at.
func (p gramPlace) longestMatch(text string, at int) (start, end int) {
	return at - len(commonEnd(text[:at], p.text[:p.offset])), at + len(commonStart(text[at:], p.text[p.offset:]))
}
