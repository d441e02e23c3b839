package v4a

import "slices"

// hunk says that the lines [base0,base1) of the base are [new0,new1) of another text.
type hunk struct{ base0, base1, new0, new1 int }

// mostEdits is how many lines may differ between two texts before what lies
// between their common beginning and end counts as changed whole. That bounds
// time and memory.
const mostEdits = 1500

// hunksOf are those by which text differs from base.
func hunksOf(base, text []string) []hunk {
	head := 0
	for head < len(base) && head < len(text) && base[head] == text[head] {
		head++
	}
	tail := 0
	for tail < len(base)-head && tail < len(text)-head && base[len(base)-1-tail] == text[len(text)-1-tail] {
		tail++
	}
	a, b := numbered(base[head:len(base)-tail], text[head:len(text)-tail])
	var hunks []hunk
	at, to := 0, 0
	add := func(i, j int) { // all before the pair i, j is changed
		if i > at || j > to {
			hunks = append(hunks, hunk{head + at, head + i, head + to, head + j})
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
