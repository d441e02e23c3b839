package credential

import (
	"bytes"
	"slices"
	"strings"
)

// matcher finds any of several texts (Wu and Manber, 1994). It looks at the last two bytes of a
// window as long as the shortest text and skips as far as they permit. It is safe for concurrent
// use.
type matcher struct {
	needles     []needle // the longest first
	minLength   int      // the length of the shortest
	maxLength   int
	shift       []uint8            // number of bytes to skip, by the last two bytes of a window
	byLastPair  map[uint16][]int32 // needles by the two bytes before offset minLength
	byFirstByte [256][]int32       // needles by their first byte
}

// needle is a text to find and its replacement of the same length.
type needle struct {
	text, replacement []byte
	credential        int // its index in the set
}

const (
	minNeedle = 2 // the matcher's minimum; credentials have 8
	maxShift  = 255
)

// newMatcher returns a matcher of the needles with at least minNeedle bytes.
func newMatcher(needles []needle) *matcher {
	m := &matcher{needles: needles, minLength: maxShift}
	m.needles = slices.DeleteFunc(m.needles, func(n needle) bool { return len(n.text) < minNeedle })
	slices.SortStableFunc(m.needles, func(a, b needle) int { return len(b.text) - len(a.text) })
	m.needles = slices.CompactFunc(m.needles, func(a, b needle) bool { return bytes.Equal(a.text, b.text) })
	for _, n := range m.needles {
		m.minLength, m.maxLength = min(m.minLength, len(n.text)), max(m.maxLength, len(n.text))
	}
	m.shift = bytes.Repeat([]byte{uint8(m.minLength - 1)}, 1<<16)
	m.byLastPair = make(map[uint16][]int32)
	for i, n := range m.needles {
		for end := 2; end <= m.minLength; end++ {
			lastPair := pairBefore(n.text, end)
			m.shift[lastPair] = min(m.shift[lastPair], uint8(m.minLength-end))
		}
		lastPair := pairBefore(n.text, m.minLength)
		m.byLastPair[lastPair] = append(m.byLastPair[lastPair], int32(i))
		m.byFirstByte[n.text[0]] = append(m.byFirstByte[n.text[0]], int32(i))
	}
	return m
}

// pairBefore returns the two bytes before end as a number.
func pairBefore(text []byte, end int) uint16 { return uint16(text[end-2])<<8 | uint16(text[end-1]) }

// find returns the first needle in text and its offset. If there is none, at is where an unfinished
// text (isEnd is false) may begin a needle, or else the length of text.
func (m *matcher) find(text []byte, isEnd bool) (at int, found *needle) {
	if len(m.needles) == 0 {
		return len(text), nil
	}
	at = 0
	for at <= len(text)-m.minLength {
		lastPair := pairBefore(text, at+m.minLength)
		if shift := m.shift[lastPair]; shift > 0 {
			at += int(shift)
			continue
		}
		if n, mayBegin := m.needleAt(m.byLastPair[lastPair], text[at:], isEnd); n != nil || mayBegin {
			return at, n
		}
		at++
	}
	if isEnd {
		return len(text), nil
	}
	for ; at < len(text); at++ {
		if _, mayBegin := m.needleAt(m.byFirstByte[text[at]], text[at:], isEnd); mayBegin {
			return at, nil
		}
	}
	return len(text), nil
}

// needleAt returns the needle at the beginning of text. mayBegin reports a longer needle that an
// unfinished text may still complete; it has priority.
func (m *matcher) needleAt(candidates []int32, text []byte, isEnd bool) (found *needle, mayBegin bool) {
	for _, i := range candidates {
		n := &m.needles[i]
		switch {
		case bytes.HasPrefix(text, n.text):
			return n, false
		case !isEnd && bytes.HasPrefix(n.text, text):
			return nil, true
		}
	}
	return nil, false
}

// credentialIn returns the index of the credential of the first needle in a text.
func (m *matcher) credentialIn(text string) (index int, ok bool) {
	if len(text) < m.minLength {
		return 0, false
	}
	_, n := m.find([]byte(text), true)
	if n == nil {
		return 0, false
	}
	return n.credential, true
}

// replace replaces needles in text in place. It returns the number of finished bytes.
func (m *matcher) replace(text []byte, isEnd bool) (finished int) {
	for {
		at, n := m.find(text[finished:], isEnd)
		finished += at
		if n == nil {
			return finished
		}
		finished += copy(text[finished:], n.replacement)
	}
}

// replaceAll returns a text with all needles replaced.
func (m *matcher) replaceAll(text string) string {
	if _, ok := m.credentialIn(text); !ok {
		return text
	}
	changed := []byte(text)
	m.replace(changed, true)
	return string(changed)
}

// containsAnyCase reports whether a text contains a needle, ignoring case.
func containsAnyCase(text, part string) bool {
	return len(text) >= len(part) && strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
