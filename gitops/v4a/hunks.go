package v4a

import (
	"slices"
	"strings"
)

// hunk says that the lines [base0,base1) of the base are [new0,new1) of another text.
type hunk struct{ base0, base1, new0, new1 int }

const (
	nearby = 60 // lines of both texts together within which a difference is expected to end
	sure   = 3  // equal lines by which its end is known
	// mostEdits is how many lines may differ below a difference that ends nowhere near before all
	// of them count as changed. That bounds time and memory.
	mostEdits = 1500
)

// hunksOf are those by which text differs from base. Many small differences are told from each other
// without a look at all lines: so the time that they take grows with their number alone.
func hunksOf(base, text []string) (hunks []hunk) {
	at, to := 0, 0
	for at < len(base) || to < len(text) {
		if at < len(base) && to < len(text) && base[at] == text[to] {
			at, to = at+1, to+1
			continue
		}
		gone, came := resync(base[at:], text[to:])
		pairs := append(matches(numbered(base[at:at+gone], text[to:to+came])), [2]int{gone, came})
		i, j := 0, 0
		for _, pair := range pairs { // all before a pair is changed
			if pair[0] > i || pair[1] > j {
				hunks = append(hunks, hunk{at + i, at + pair[0], to + j, to + pair[1]})
			}
			i, j = pair[0]+1, pair[1]+1
		}
		at, to = at+gone, to+came
	}
	return hunks
}

// resync finds where two texts that differ from their first line on are equal again.
func resync(base, text []string) (gone, came int) {
	for both := 1; both <= nearby; both++ {
		for gone := max(0, both-len(text)); gone <= min(both, len(base)); gone++ {
			if inStep(base[gone:], text[both-gone:]) {
				return gone, both - gone
			}
		}
	}
	gone, came = len(base), len(text)
	for gone > 0 && came > 0 && base[gone-1] == text[came-1] {
		gone, came = gone-1, came-1
	}
	return gone, came
}

func inStep(base, text []string) bool {
	if len(base) < sure || len(text) < sure {
		return slices.Equal(base, text)
	}
	return slices.Equal(base[:sure], text[:sure])
}

// Compared says which lines stay where others take their place, which go and which come.
func Compared(was, is []string) []Line {
	all := make([]Line, 0, max(len(was), len(is)))
	add := func(kind Kind, texts []string) {
		for _, text := range texts {
			all = append(all, Line{kind, text})
		}
	}
	at := 0
	for _, h := range hunksOf(was, is) {
		add(Keep, was[at:h.base0])
		add(Remove, was[h.base0:h.base1])
		add(Insert, is[h.new0:h.new1])
		at = h.base1
	}
	add(Keep, was[at:])
	return all
}

// Replacing is the section of a text in a file that gives way to another.
func Replacing(path, old, now string) Section {
	all := Compared(lines(old), lines(now))
	for i, l := range all {
		all[i].Text = strings.TrimSuffix(l.Text, "\n")
	}
	return Section{Op: Update, Path: path, Hunks: []Hunk{{Lines: all}}}
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
