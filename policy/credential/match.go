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
	needles []needle // the longest first
	least   int      // the length of the shortest
	longest int
	shift   []uint8            // number of bytes to skip, by the last two bytes of a window
	ending  map[uint16][]int32 // needles by the two bytes before offset least
	begin   [256][]int32       // needles by their first byte
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
	m := &matcher{needles: needles, least: maxShift}
	m.needles = slices.DeleteFunc(m.needles, func(n needle) bool { return len(n.text) < minNeedle })
	slices.SortStableFunc(m.needles, func(a, b needle) int { return len(b.text) - len(a.text) })
	m.needles = slices.CompactFunc(m.needles, func(a, b needle) bool { return bytes.Equal(a.text, b.text) })
	for _, n := range m.needles {
		m.least, m.longest = min(m.least, len(n.text)), max(m.longest, len(n.text))
	}
	m.shift = bytes.Repeat([]byte{uint8(m.least - 1)}, 1<<16)
	m.ending = make(map[uint16][]int32)
	for i, n := range m.needles {
		for end := 2; end <= m.least; end++ {
			two := pair(n.text, end)
			m.shift[two] = min(m.shift[two], uint8(m.least-end))
		}
		two := pair(n.text, m.least)
		m.ending[two] = append(m.ending[two], int32(i))
		m.begin[n.text[0]] = append(m.begin[n.text[0]], int32(i))
	}
	return m
}

// pair returns the two bytes before end as a number.
func pair(text []byte, end int) uint16 { return uint16(text[end-2])<<8 | uint16(text[end-1]) }

// find returns the first needle in text and its offset. If there is none, at is where an unfinished
// text (whole is false) may begin a needle, or else the length of text.
func (m *matcher) find(text []byte, whole bool) (at int, found *needle) {
	if len(m.needles) == 0 {
		return len(text), nil
	}
	at = 0
	for at <= len(text)-m.least {
		two := pair(text, at+m.least)
		if shift := m.shift[two]; shift > 0 {
			at += int(shift)
			continue
		}
		if n, part := m.needleAt(m.ending[two], text[at:], whole); n != nil || part {
			return at, n
		}
		at++
	}
	if whole {
		return len(text), nil
	}
	for ; at < len(text); at++ {
		if _, part := m.needleAt(m.begin[text[at]], text[at:], false); part {
			return at, nil
		}
	}
	return len(text), nil
}

// needleAt returns the needle at the beginning of text. part reports a longer needle that an
// unfinished text may still complete; it has priority.
func (m *matcher) needleAt(some []int32, text []byte, whole bool) (found *needle, part bool) {
	for _, i := range some {
		n := &m.needles[i]
		switch {
		case bytes.HasPrefix(text, n.text):
			return n, false
		case !whole && bytes.HasPrefix(n.text, text):
			return nil, true
		}
	}
	return nil, false
}

// credentialIn returns the index of the credential of the first needle in a text.
func (m *matcher) credentialIn(text string) (index int, ok bool) {
	if len(text) < m.least {
		return 0, false
	}
	_, n := m.find([]byte(text), true)
	if n == nil {
		return 0, false
	}
	return n.credential, true
}

// replace replaces needles in text in place. It returns the number of finished bytes.
func (m *matcher) replace(text []byte, whole bool) (clean int) {
	for {
		at, n := m.find(text[clean:], whole)
		clean += at
		if n == nil {
			return clean
		}
		clean += copy(text[clean:], n.replacement)
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
