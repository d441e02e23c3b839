package v4a

import (
	"math"
	"slices"
	"strings"
)

// lineRange is a difference of two texts: a range of whole lines in the old one, and the range in
// the new one that replaces it. Bounds are in bytes.
type lineRange struct{ oldFrom, oldTo, newFrom, newTo int }

const (
	maxDifferenceLines = 60 // a difference is expected to be shorter than this many lines of both texts together
	sureLines          = 3  // this many equal lines end a difference
	// maxEdits bounds the size of a difference without an end nearby. Beyond it, all remaining
	// lines count as changed. It bounds time and memory.
	maxEdits = 1500
)

// differences returns the ranges that differ. It looks only at the surroundings of each difference,
// so its time grows with the number of differences more than with the length of the texts.
func differences(old, text string) (all []lineRange) {
	at, to := 0, 0
	for {
		same := sameLines(old[at:], text[to:])
		at, to = at+same, to+same
		if at == len(old) && to == len(text) {
			return all
		}
		was, is := lines(old[at:], maxDifferenceLines+sureLines), lines(text[to:], maxDifferenceLines+sureLines)
		gone, came, near := resync(was, is)
		if !near {
			was, is = lines(old[at:], math.MaxInt), lines(text[to:], math.MaxInt)
			gone, came = withoutEqualEnds(was, is)
		}
		i, j := 0, 0
		for _, pair := range append(matches(numbered(was[:gone], is[:came])), [2]int{gone, came}) {
			r := lineRange{at, at + size(was[i:pair[0]]), to, to + size(is[j:pair[1]])}
			if r.oldTo > r.oldFrom || r.newTo > r.newFrom {
				all = append(all, r)
			}
			at, to = r.oldTo, r.newTo
			if i, j = pair[0]+1, pair[1]+1; i <= gone && j <= came {
				at, to = at+len(was[i-1]), to+len(was[i-1])
			}
		}
	}
}

// sameLines returns how many bytes the equal first lines of two texts have.
func sameLines(a, b string) (n int) {
	for step := 1 << 12; step > 0; step >>= 4 {
		for n+step <= min(len(a), len(b)) && a[n:n+step] == b[n:n+step] {
			n += step
		}
	}
	if n == len(a) && n == len(b) {
		return n
	}
	return strings.LastIndexByte(a[:n], '\n') + 1
}

// lines returns up to most lines from the start of a text.
func lines(text string, most int) []string {
	if most > len(text) {
		most = strings.Count(text, "\n") + 1
	}
	all := make([]string, 0, most)
	for line := range strings.Lines(text) {
		if len(all) == most {
			break
		}
		all = append(all, line)
	}
	return all
}

// size returns the length of lines in bytes.
func size(lines []string) (bytes int) {
	for _, line := range lines {
		bytes += len(line)
	}
	return bytes
}

// resync finds where two texts are equal again after a difference. It returns the number of removed
// lines of was and of added lines of is up to there, and false if that is too far away. It prefers
// one replaced line to an insertion.
func resync(was, is []string) (gone, came int, near bool) {
	if len(was) > 0 && len(is) > 0 && inStep(was[1:], is[1:]) { // one line was replaced
		return 1, 1, true
	}
	for both := 1; both <= maxDifferenceLines; both++ {
		for gone := max(0, both-len(is)); gone <= min(both, len(was)); gone++ {
			if inStep(was[gone:], is[both-gone:]) {
				return gone, both - gone, true
			}
		}
	}
	return 0, 0, false
}

// inStep reports whether both texts begin with the same sureLines lines, or are equal if one is
// shorter.
func inStep(was, is []string) bool {
	if len(was) < sureLines || len(is) < sureLines {
		return slices.Equal(was, is)
	}
	return slices.Equal(was[:sureLines], is[:sureLines])
}

// withoutEqualEnds returns the numbers of lines of both texts above their common last lines.
func withoutEqualEnds(was, is []string) (gone, came int) {
	gone, came = len(was), len(is)
	for gone > 0 && came > 0 && was[gone-1] == is[came-1] {
		gone, came = gone-1, came-1
	}
	return gone, came
}

// AlignTexts returns the lines that were kept, removed and inserted from was to is. Equal lines at
// the end of both are always kept.
func AlignTexts(was, is string) (all []Line) {
	add := func(kind Kind, text string) {
		for line := range strings.Lines(text) {
			all = append(all, Line{kind, strings.TrimSuffix(line, "\n")})
		}
	}
	at, tail := 0, 0
	for line := "\n"; line != ""; tail += len(line) {
		if line = lastLineOf(was[:len(was)-tail]); line != lastLineOf(is[:len(is)-tail]) {
			break
		}
	}
	for _, r := range differences(was[:len(was)-tail], is[:len(is)-tail]) {
		add(Keep, was[at:r.oldFrom])
		add(Remove, was[r.oldFrom:r.oldTo])
		add(Insert, is[r.newFrom:r.newTo])
		at = r.oldTo
	}
	add(Keep, was[at:])
	return all
}

// ReplaceSection returns a section that replaces the text old in a file by the text now.
func ReplaceSection(path, old, now string) Section {
	return Section{Op: Update, Path: path, Hunks: []Hunk{{Lines: AlignTexts(old, now)}}}
}

// numbered returns a number for each line of a and b. Equal lines have equal numbers.
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

// matches returns the pairs of a longest common subsequence (E. Myers, "An O(ND) Difference
// Algorithm and Its Variations", 1986). It returns none if the texts differ in more than maxEdits
// lines.
func matches(a, b []int32) [][2]int {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	reach := map[int]int{1: 0} // how far along a each diagonal reaches
	var trace [][]int32
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
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
				return tracePath(append(trace, row), a, b)
			}
		}
		trace = append(trace, row)
	}
	return nil
}

// tracePath returns the pairs of equal lines along the shortest edit path.
func tracePath(trace [][]int32, a, b []int32) [][2]int {
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

// cameFrom returns the end point of the path before its d-th edit, which reaches diagonal k.
func cameFrom(before []int32, d, k int) (x, y int) {
	reach := func(k int) int { return int(before[k+d-1]) }
	from := k - 1
	if k == -d || k != d && reach(k-1) < reach(k+1) {
		from = k + 1
	}
	x = reach(from)
	return x, x - from
}
