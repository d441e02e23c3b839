package find

import (
	"strings"
	"unicode/utf8"
)

const byteOrderMark = "\uFEFF"

// ID identifies a line as long as the text exists. The original lines have the ids 1, 2 and so on.
// 0 is the position before the first and after the last line.
type ID = int32

// Seeker searches for blocks in texts. It knows all lines of the blocks in advance, so it scans
// each text only once.
type Seeker struct {
	keys  map[string]int32         // a number from 1 for each line to search for, by its key
	ends  [utf8.RuneSelf][2]uint64 // for each first byte of a key, a bit for each last one; of ASCII only
	steps int                      // number of comparisons left
}

// allSteps limits a search for lines that are frequent but never consecutive. It takes some tenths
// of a second.
const allSteps = 1 << 26

// NewSeeker returns a seeker for the blocks in wanted. It cannot find others.
func NewSeeker(wanted ...[]string) *Seeker {
	s := &Seeker{keys: map[string]int32{}, steps: allSteps}
	for _, lines := range wanted {
		for _, line := range lines {
			// A text's lines do not contain its byte order mark, but a wanted line may.
			for _, spelled := range []string{line, strings.TrimPrefix(line, byteOrderMark)} {
				s.add(key(spelled))
			}
		}
	}
	return s
}

func (s *Seeker) add(key string) {
	if s.keys[key] != 0 {
		return
	}
	s.keys[key] = int32(len(s.keys) + 1)
	if first, last, ok := asciiEnds(key); ok {
		s.ends[first][last/64] |= 1 << (last % 64)
	}
}

// keyNumber returns the number of a line's key, or 0 for a line that is not searched for. It recognizes most such lines by
// their ends.
func (s *Seeker) keyNumber(line string) int32 {
	line = strings.TrimSpace(line)
	if first, last, ok := asciiEnds(line); ok && s.ends[first][last/64]&(1<<(last%64)) == 0 {
		return 0
	}
	return s.keys[key(line)]
}

// asciiEnds returns the first and the last byte of a trimmed line if both are ASCII. Its key has the same ones.
func asciiEnds(line string) (first, last byte, ok bool) {
	if line == "" {
		return 0, 0, false
	}
	first, last = line[0], line[len(line)-1]
	return first, last, first < utf8.RuneSelf && last < utf8.RuneSelf
}

// OutOfSteps reports whether the search was stopped because the lines occur too often.
func (s *Seeker) OutOfSteps() bool { return s.steps < 0 }

// Text is a list of lines with stable ids.
type Text struct {
	seeker    *Seeker
	lines     []line
	lineCount int // number of lines, without deleted ones

	linesWithKey [][]ID // lines by key, possibly with deleted ones
	liveCount    []int  // number of lines by key, without deleted ones
}

type line struct {
	text       string
	prev, next ID
	key        int32 // its number in Seeker.keys, or 0
	deleted    bool
}

// Text returns an empty text with room for lines, which [Text.Insert] adds. They have no endings and no byte order mark.
func (s *Seeker) Text(room int) *Text {
	return &Text{seeker: s, lines: make([]line, 1, room+1), linesWithKey: make([][]ID, len(s.keys)+1), liveCount: make([]int, len(s.keys)+1)}
}

// Len returns the number of lines.
func (t *Text) Len() int { return t.lineCount }

// Line returns the text of a line, even of a deleted one.
func (t *Text) Line(id ID) string { return t.lines[id].text }

func (t *Text) Next(id ID) ID { return t.lines[id].next }

func (t *Text) Prev(id ID) ID { return t.lines[id].prev }

// Follows reports whether the line below is somewhere after the line above.
func (t *Text) Follows(above, below ID) bool {
	for id := t.lines[above].next; id != 0; id = t.lines[id].next {
		if t.seeker.steps--; id == below {
			return true
		}
	}
	return false
}

// Insert inserts a line before the line above, or at the end if above is 0.
func (t *Text) Insert(above ID, text string) ID {
	id, prev, key := ID(len(t.lines)), t.lines[above].prev, t.seeker.keyNumber(text)
	t.lines = append(t.lines, line{text: text, prev: prev, next: above, key: key})
	t.lines[prev].next, t.lines[above].prev = id, id
	t.lineCount++
	if key > 0 {
		t.linesWithKey[key] = append(t.linesWithKey[key], id)
		t.liveCount[key]++
	}
	return id
}

// Delete deletes a line and returns the next one.
func (t *Text) Delete(id ID) ID {
	l := &t.lines[id]
	l.deleted = true
	t.lines[l.prev].next, t.lines[l.next].prev = l.next, l.prev
	t.lineCount--
	t.liveCount[l.key]--
	return l.next
}

// linesOf returns the lines with a key, including a few deleted ones. It removes deleted lines from
// its list if they are the majority.
func (t *Text) linesOf(key int32) []ID {
	if len(t.linesWithKey[key]) > 2*t.liveCount[key]+8 {
		t.seeker.steps -= len(t.linesWithKey[key])
		live := make([]ID, 0, t.liveCount[key])
		for _, id := range t.linesWithKey[key] {
			if !t.lines[id].deleted {
				live = append(live, id)
			}
		}
		t.linesWithKey[key] = live
	}
	return t.linesWithKey[key]
}
