package find

import "strings"

const byteOrderMark = "\uFEFF"

// ID identifies a line for the lifetime of a text, from 1 in original order. 0 means before the
// first and after the last line.
type ID = int32

// Seeker searches blocks in texts. It knows all lines of the blocks in advance, so each text is
// scanned once.
type Seeker struct {
	keys  map[string]int32 // a number for each line that is looked for, from 1
	steps int              // comparisons that are left
}

// allSteps bounds the search for lines that are frequent but never consecutive, to some tenths of a
// second.
const allSteps = 1 << 26

// NewSeeker returns a seeker for blocks of these lines only.
func NewSeeker(wanted ...[]string) *Seeker {
	s := &Seeker{keys: map[string]int32{}, steps: allSteps}
	for _, lines := range wanted {
		for _, line := range lines {
			// A byte order mark belongs to no line of a text.
			for _, spelled := range []string{line, strings.TrimPrefix(line, byteOrderMark)} {
				if k := key(spelled); s.keys[k] == 0 {
					s.keys[k] = int32(len(s.keys) + 1)
				}
			}
		}
	}
	return s
}

// GaveUp reports whether lines occur too often to be looked for.
func (s *Seeker) GaveUp() bool { return s.steps < 0 }

// Text is a list of lines with stable ids.
type Text struct {
	seeker *Seeker
	lines  []line
	there  int // lines that are not gone

	of    []int32 // the key of each line, or 0
	at    [][]ID  // where each key is; some of these lines may be gone
	count []int   // how many of those are not
}

type line struct {
	text       string
	prev, next ID
	gone       bool
}

// Text returns a text of lines without endings and byte order mark.
func (s *Seeker) Text(lines []string) *Text {
	t := &Text{
		seeker: s, lines: make([]line, 1, len(lines)+1), of: make([]int32, 1, len(lines)+1),
		at: make([][]ID, len(s.keys)+1), count: make([]int, len(s.keys)+1),
	}
	for _, text := range lines {
		t.Insert(0, text)
	}
	return t
}

// Len is how many lines there are.
func (t *Text) Len() int { return t.there }

// Line returns a line, even a removed one.
func (t *Text) Line(id ID) string { return t.lines[id].text }

func (t *Text) Next(id ID) ID { return t.lines[id].next }

func (t *Text) Prev(id ID) ID { return t.lines[id].prev }

// Follows reports whether a line stands below another one.
func (t *Text) Follows(above, below ID) bool {
	for id := t.lines[above].next; id != 0; id = t.lines[id].next {
		if t.seeker.steps--; id == below {
			return true
		}
	}
	return false
}

// Insert puts a line above another one, and below all above 0.
func (t *Text) Insert(above ID, text string) ID {
	id, prev := ID(len(t.lines)), t.lines[above].prev
	t.lines = append(t.lines, line{text: text, prev: prev, next: above})
	t.lines[prev].next, t.lines[above].prev = id, id
	t.there++
	k := t.seeker.keys[key(text)]
	t.of = append(t.of, k)
	if k > 0 {
		t.at[k] = append(t.at[k], id)
		t.count[k]++
	}
	return id
}

// Delete takes a line away and returns the one below it.
func (t *Text) Delete(id ID) ID {
	l := &t.lines[id]
	l.gone = true
	t.lines[l.prev].next, t.lines[l.next].prev = l.next, l.prev
	t.there--
	t.count[t.of[id]]--
	return l.next
}

// sites returns the lines with a key, including a few removed ones.
func (t *Text) sites(key int32) []ID {
	if len(t.at[key]) > 2*t.count[key]+8 {
		t.seeker.steps -= len(t.at[key])
		there := make([]ID, 0, t.count[key])
		for _, id := range t.at[key] {
			if !t.lines[id].gone {
				there = append(there, id)
			}
		}
		t.at[key] = there
	}
	return t.at[key]
}
