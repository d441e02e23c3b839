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

// OutOfSteps reports whether lines occur too often to be looked for.
func (s *Seeker) OutOfSteps() bool { return s.steps < 0 }

// Text is a list of lines with stable ids.
type Text struct {
	seeker    *Seeker
	lines     []line
	lineCount int // without deleted lines

	keyOfLine    []int32 // the key of each line, or 0
	linesWithKey [][]ID  // may include deleted lines
	liveCount    []int   // how many of those are not
}

type line struct {
	text       string
	prev, next ID
	deleted    bool
}

// Text returns a text of lines without endings and byte order mark.
func (s *Seeker) Text(lines []string) *Text {
	t := &Text{
		seeker: s, lines: make([]line, 1, len(lines)+1), keyOfLine: make([]int32, 1, len(lines)+1),
		linesWithKey: make([][]ID, len(s.keys)+1), liveCount: make([]int, len(s.keys)+1),
	}
	for _, text := range lines {
		t.Insert(0, text)
	}
	return t
}

// Len is how many lines there are.
func (t *Text) Len() int { return t.lineCount }

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
	t.lineCount++
	k := t.seeker.keys[key(text)]
	t.keyOfLine = append(t.keyOfLine, k)
	if k > 0 {
		t.linesWithKey[k] = append(t.linesWithKey[k], id)
		t.liveCount[k]++
	}
	return id
}

// Delete takes a line away and returns the one below it.
func (t *Text) Delete(id ID) ID {
	l := &t.lines[id]
	l.deleted = true
	t.lines[l.prev].next, t.lines[l.next].prev = l.next, l.prev
	t.lineCount--
	t.liveCount[t.keyOfLine[id]]--
	return l.next
}

// linesOf returns the lines with a key, including a few removed ones.
func (t *Text) linesOf(key int32) []ID {
	if len(t.linesWithKey[key]) > 2*t.liveCount[key]+8 {
		t.seeker.steps -= len(t.linesWithKey[key])
		there := make([]ID, 0, t.liveCount[key])
		for _, id := range t.linesWithKey[key] {
			if !t.lines[id].deleted {
				there = append(there, id)
			}
		}
		t.linesWithKey[key] = there
	}
	return t.linesWithKey[key]
}
