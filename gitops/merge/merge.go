// Package merge compares texts line by line, and merges them three ways (diff3): what one side
// changed of the base is taken, and what both changed differently is a
// conflict. It owns how lines are matched. It knows nothing of git, files and
// modes.
package merge

import (
	"slices"
	"strings"
)

// Lines merges what two sides made of base. Changes of the two that overlap or
// touch one another conflict, unless they are the same; ok is false then, and
// the text is of no use. Line ends are part of a line: a file without a last
// newline stays one.
func Lines(base, ours, theirs string) (merged string, ok bool) {
	switch {
	case ours == theirs, theirs == base:
		return ours, true
	case ours == base:
		return theirs, true
	}
	return newMerger(base, ours, theirs, nil).run()
}

// Labels say in the marks of a conflict whose lines are whose.
type Labels struct{ Ours, Base, Theirs string }

// sign ends each mark, by which it is found again, whatever else looks like one.
const sign = " (agent-ci)"

// Marks are before the lines of ours, the base, and theirs, and behind all.
func (l Labels) Marks() [4]string {
	return [4]string{"<<<<<<< " + l.Ours + sign, "||||||| " + l.Base + sign, "======= " + l.Theirs + sign, ">>>>>>> " + l.Theirs + sign}
}

// IsMark says whether a line, without its end, is a mark of Marked.
func IsMark(line string) bool {
	if !strings.HasSuffix(line, sign) {
		return false
	}
	marks := Labels{}.Marks()
	return slices.ContainsFunc(marks[:], func(mark string) bool { return strings.HasPrefix(line, strings.TrimSuffix(mark, sign)) })
}

// Marked merges as Lines does, and puts the lines of ours, the base and theirs between
// marks where they conflict.
func Marked(base, ours, theirs string, labels Labels) string {
	if merged, ok := Lines(base, ours, theirs); ok {
		return merged
	}
	merged, _ := newMerger(base, ours, theirs, &labels).run()
	return merged
}

func newMerger(base, ours, theirs string, labels *Labels) *merger {
	b, a, z := split(base), split(ours), split(theirs)
	return &merger{base: b, labels: labels, sides: [2]side{{text: a, hunks: Hunks(b, a)}, {text: z, hunks: Hunks(b, z)}}}
}

func split(text string) []string { return slices.Collect(strings.Lines(text)) }

// Hunk says that the lines [Base0,Base1) of the base are [New0,New1) of another text.
type Hunk struct{ Base0, Base1, New0, New1 int }

// side is one of the two, with the hunks that are not dealt with yet.
type side struct {
	text  []string
	hunks []Hunk
}

type merger struct {
	base   []string
	labels *Labels // of marks; nil to end at a conflict
	sides  [2]side
	at     int // lines of the base that are dealt with
	out    strings.Builder
}

func (m *merger) run() (string, bool) {
	for len(m.sides[0].hunks)+len(m.sides[1].hunks) > 0 {
		if !m.next() {
			return "", false
		}
	}
	m.write(m.base[m.at:])
	return m.out.String(), true
}

// next deals with the first hunk that is left and with all that overlap or
// touch it.
func (m *merger) next() bool {
	low, high := m.first(), -1
	var taken [2][]Hunk
	for grew := true; grew; {
		grew = false
		for i := range m.sides {
			s := &m.sides[i]
			for len(s.hunks) > 0 && s.hunks[0].Base0 <= max(high, low) {
				taken[i] = append(taken[i], s.hunks[0])
				high = max(high, s.hunks[0].Base1)
				s.hunks, grew = s.hunks[1:], true
			}
		}
	}
	m.write(m.base[m.at:low])
	m.at = high
	ours := m.sides[0].region(taken[0], low, high)
	theirs := m.sides[1].region(taken[1], low, high)
	switch {
	case len(taken[1]) == 0:
		m.write(ours)
	case len(taken[0]) == 0, slices.Equal(ours, theirs):
		m.write(theirs)
	case m.labels == nil:
		return false
	default:
		m.conflict(ours, m.base[low:high], theirs)
	}
	return true
}

// conflict writes parts between marks, each mark on a line of its own.
func (m *merger) conflict(parts ...[]string) {
	marks := m.labels.Marks()
	for i, mark := range marks {
		m.out.WriteString(mark + "\n")
		if i == len(parts) {
			break
		}
		m.write(parts[i])
		if last := len(parts[i]) - 1; last >= 0 && !strings.HasSuffix(parts[i][last], "\n") {
			m.out.WriteString("\n")
		}
	}
}

// first is where the first hunk that is left begins in the base.
func (m *merger) first() int {
	first := len(m.base)
	for _, s := range m.sides {
		if len(s.hunks) > 0 {
			first = min(first, s.hunks[0].Base0)
		}
	}
	return first
}

// region is what a side has in place of the lines [low,high) of the base, which
// hold all of hunks.
func (s *side) region(hunks []Hunk, low, high int) []string {
	if len(hunks) == 0 {
		return nil // never used: the other side is taken
	}
	first, last := hunks[0], hunks[len(hunks)-1]
	return s.text[first.New0-(first.Base0-low) : last.New1+(high-last.Base1)]
}

func (m *merger) write(lines []string) {
	for _, line := range lines {
		m.out.WriteString(line)
	}
}

// mostEdits is how many lines may differ between two texts before what lies
// between their common beginning and end counts as changed whole. That makes
// more conflicts and never a wrong merge, and bounds time and memory.
const mostEdits = 1500

// Hunks are those by which text differs from base.
func Hunks(base, text []string) []Hunk {
	head := 0
	for head < len(base) && head < len(text) && base[head] == text[head] {
		head++
	}
	tail := 0
	for tail < len(base)-head && tail < len(text)-head && base[len(base)-1-tail] == text[len(text)-1-tail] {
		tail++
	}
	a, b := numbered(base[head:len(base)-tail], text[head:len(text)-tail])
	var hunks []Hunk
	at, to := 0, 0
	add := func(i, j int) { // all before the pair i, j is changed
		if i > at || j > to {
			hunks = append(hunks, Hunk{head + at, head + i, head + to, head + j})
		}
	}
	for _, pair := range matches(a, b) {
		add(pair[0], pair[1])
		at, to = pair[0]+1, pair[1]+1
	}
	add(len(a), len(b))
	return hunks
}

// numbered gives equal lines equal numbers.
func numbered(a, b []string) (x, y []int32) {
	ids := make(map[string]int32, len(a))
	number := func(lines []string) []int32 {
		numbers := make([]int32, len(lines))
		for i, line := range lines {
			id, known := ids[line]
			if !known {
				id = int32(len(ids))
				ids[line] = id
			}
			numbers[i] = id
		}
		return numbers
	}
	return number(a), number(b)
}

// matches are the pairs of a longest common subsequence (E. Myers, "An O(ND)
// Difference Algorithm and Its Variations", 1986); none when the two differ in
// more than mostEdits lines.
func matches(a, b []int32) [][2]int {
	reach := map[int]int{1: 0} // how far in a each diagonal got
	var trace [][]int32
	for d := 0; d <= min(len(a)+len(b), mostEdits); d++ {
		row := make([]int32, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := reach[k-1] + 1
			if down := reach[k+1]; k == -d || k != d && reach[k-1] < down {
				x = down
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[k], row[k+d] = x, int32(x)
			if x >= len(a) && x-k >= len(b) {
				return walkBack(append(trace, row), a, b)
			}
		}
		trace = append(trace, row)
	}
	return nil
}

// walkBack reads the pairs off the way that ends in both ends.
func walkBack(trace [][]int32, a, b []int32) [][2]int {
	var pairs [][2]int
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		fromX, fromY := 0, 0
		if d > 0 {
			fromX, fromY = cameFrom(trace[d-1], d, x-y)
		}
		for x > fromX && y > fromY && a[x-1] == b[y-1] {
			x, y = x-1, y-1
			pairs = append(pairs, [2]int{x, y})
		}
		x, y = fromX, fromY
	}
	slices.Reverse(pairs)
	return pairs
}

// cameFrom is the point on the way of d-1 edits before the d-th, which led to
// diagonal k.
func cameFrom(before []int32, d, k int) (x, y int) {
	reach := func(k int) int { return int(before[k+d-1]) }
	from := k - 1
	if k == -d || k != d && reach(k-1) < reach(k+1) {
		from = k + 1
	}
	x = reach(from)
	return x, x - from
}
