package v4a

import (
	"slices"
	"strings"
)

// lineRange is a difference of two texts: a range of whole lines in the old one, and the range in
// the new one that replaces it. Bounds are in bytes.
type lineRange struct{ oldFrom, oldTo, newFrom, newTo int }

const (
	maxDifferenceLines = 60 // a difference is expected to be shorter than this many lines of both texts together
	minEqualLines      = 3  // this many equal lines end a difference
	// maxEdits bounds the size of a difference without an end nearby. Beyond it, all remaining
	// lines count as changed. It bounds time and memory.
	maxEdits = 1500
)

// differingRanges returns the ranges that differ. It looks only at the surroundings of each difference,
// so its time grows with the number of differences more than with the length of the texts.
func differingRanges(old, text string) (all []lineRange) {
	oldAt, newAt := 0, 0
	for {
		same := commonPrefixLines(old[oldAt:], text[newAt:])
		oldAt, newAt = oldAt+same, newAt+same
		if oldAt == len(old) && newAt == len(text) {
			return all
		}
		oldLines, newLines := firstLines(old[oldAt:], maxDifferenceLines+minEqualLines), firstLines(text[newAt:], maxDifferenceLines+minEqualLines)
		removed, added, isNear := findResync(oldLines, newLines)
		if !isNear {
			tail := commonTail(old[oldAt:], text[newAt:])
			oldLines = slices.Collect(strings.Lines(old[oldAt : len(old)-tail]))
			newLines = slices.Collect(strings.Lines(text[newAt : len(text)-tail]))
			removed, added = len(oldLines), len(newLines)
		}
		i, j := 0, 0
		for _, pair := range append(commonSubsequence(numberLines(oldLines[:removed], newLines[:added])), [2]int{removed, added}) {
			r := lineRange{oldAt, oldAt + byteLength(oldLines[i:pair[0]]), newAt, newAt + byteLength(newLines[j:pair[1]])}
			isEmpty := r.oldTo == r.oldFrom && r.newTo == r.newFrom
			if !isEmpty {
				all = append(all, r)
			}
			oldAt, newAt = r.oldTo, r.newTo
			isEnd := pair[0] == removed || pair[1] == added
			if !isEnd {
				equal := len(oldLines[pair[0]])
				oldAt, newAt = oldAt+equal, newAt+equal
			}
			i, j = pair[0]+1, pair[1]+1
		}
	}
}

// commonPrefixLines returns how many bytes the equal first lines of two texts have.
func commonPrefixLines(a, b string) (n int) {
	for step := 1 << 12; step > 0; step >>= 4 { // large pieces are fast to compare; the last step is 1
		for n+step <= min(len(a), len(b)) && a[n:n+step] == b[n:n+step] {
			n += step
		}
	}
	if n == len(a) && n == len(b) {
		return n
	}
	return strings.LastIndexByte(a[:n], '\n') + 1
}

// firstLines returns up to maxLines lines from the start of a text.
func firstLines(text string, maxLines int) []string {
	first := make([]string, 0, maxLines)
	for line := range strings.Lines(text) {
		if len(first) == maxLines {
			break
		}
		first = append(first, line)
	}
	return first
}

// byteLength returns the length of lines in bytes.
func byteLength(lines []string) (bytes int) {
	for _, line := range lines {
		bytes += len(line)
	}
	return bytes
}

// findResync finds where two texts are equal again after a difference. It returns the number of removed
// old lines and of added new lines up to there, and false if that is too far away. It prefers
// one replaced line to an insertion.
func findResync(oldLines, newLines []string) (removed, added int, isNear bool) {
	if len(oldLines) > 0 && len(newLines) > 0 && startAlike(oldLines[1:], newLines[1:]) { // one line was replaced
		return 1, 1, true
	}
	for lines := 1; lines <= maxDifferenceLines; lines++ { // removed and added ones
		for removed := max(0, lines-len(newLines)); removed <= min(lines, len(oldLines)); removed++ {
			added := lines - removed
			if startAlike(oldLines[removed:], newLines[added:]) {
				return removed, added, true
			}
		}
	}
	return 0, 0, false
}

// startAlike reports whether both texts begin with the same minEqualLines lines, or are equal if one is
// shorter.
func startAlike(oldLines, newLines []string) bool {
	if len(oldLines) < minEqualLines || len(newLines) < minEqualLines {
		return slices.Equal(oldLines, newLines)
	}
	return slices.Equal(oldLines[:minEqualLines], newLines[:minEqualLines])
}

// AlignTexts returns the lines that were kept, removed and inserted from old to text. Equal lines at
// the end of both are always kept.
func AlignTexts(old, text string) (all []Line) {
	add := func(kind Kind, part string) {
		for line := range strings.Lines(part) {
			all = append(all, Line{kind, strings.TrimSuffix(line, "\n")})
		}
	}
	at, tail := 0, commonTail(old, text)
	for _, r := range differingRanges(old[:len(old)-tail], text[:len(text)-tail]) {
		add(Keep, old[at:r.oldFrom])
		add(Remove, old[r.oldFrom:r.oldTo])
		add(Insert, text[r.newFrom:r.newTo])
		at = r.oldTo
	}
	add(Keep, old[at:])
	return all
}

// commonTail returns how many bytes the equal last lines of two texts have.
func commonTail(a, b string) (n int) {
	for {
		line := lastLineOf(a[:len(a)-n])
		if line == "" || line != lastLineOf(b[:len(b)-n]) {
			return n
		}
		n += len(line)
	}
}

// ReplaceSection returns a section that replaces the text old in a file by the text now.
func ReplaceSection(path, old, now string) Section {
	return Section{Op: Update, Path: path, Hunks: []Hunk{{Lines: AlignTexts(old, now)}}}
}

// numberLines returns a number for each line of a and b. Equal lines have equal numbers.
func numberLines(a, b []string) (x, y []int32) {
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

// commonSubsequence returns the pairs of a longest common subsequence (E. Myers, "An O(ND) Difference
// Algorithm and Its Variations", 1986). It returns none if the texts differ in more than maxEdits
// lines.
func commonSubsequence(a, b []int32) [][2]int {
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

// cameFrom returns where the path to diagonal k was before its d-th edit. before has the furthest x after d-1 edits,
// by diagonal.
func cameFrom(before []int32, d, k int) (x, y int) {
	reach := func(k int) int { return int(before[k+d-1]) }
	from := k - 1
	if k == -d || k != d && reach(k-1) < reach(k+1) {
		from = k + 1
	}
	x = reach(from)
	return x, x - from
}
