package v4a

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// mismatchError returns the error for a hunk whose old lines were not found. It says where else they
// are, or which place is most similar.
func (p *placer) mismatchError(i int) error {
	h := &p.section.Hunks[i]
	mismatch := &MatchError{file: p.section.Path, hunk: i + 1, patchLine: h.firstLine, want: OldLines(h.Lines), searchedBelow: p.cursor}
	if at, ok := p.findFirst(mismatch.want, p.cursor); ok {
		mismatch.hint = fmt.Sprintf(`they are at line %d, which is not the end of the file: leave "%s" out`, at+1, endOfFileMarker)
		return mismatch
	}
	if at, ok := p.findFirst(mismatch.want, 0); ok {
		mismatch.hint = fmt.Sprintf("they are at line %d: put hunks in the order of the file, and \"@@\" lines above what they are for", at+1)
		return mismatch
	}
	line, diff, missing := p.findMostSimilar(mismatch.want)
	mismatch.nearestLine, mismatch.diff, mismatch.patchLine = line, diff, h.patchLine(missing)
	mismatch.hint = otherEncoding(p.text.data, mismatch.want)
	return mismatch
}

// otherEncoding returns a hint if the file is not UTF-8 and the wanted lines are not ASCII, since
// such lines cannot match. Otherwise it returns "".
func otherEncoding(text string, want []string) string {
	ascii := func(line string) bool {
		return strings.IndexFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	}
	if utf8.ValidString(text) || !slices.ContainsFunc(want, func(line string) bool { return !ascii(line) }) {
		return ""
	}
	return "the file is not UTF-8, so only its ASCII lines can be matched; change the others with a command, or convert it with iconv and back"
}

// ambiguousError returns the error for a hunk that fits several places. hint says how to choose one.
func (p *placer) ambiguousError(i int, hint string) error {
	h := &p.section.Hunks[i]
	return &MatchError{file: p.section.Path, hunk: i + 1, patchLine: h.firstLine, want: OldLines(h.Lines), isAmbiguous: true, hint: hint}
}

// tooFrequentError returns the error for a hunk whose search was stopped because its lines are too frequent.
func (p *placer) tooFrequentError(i int) error {
	return p.ambiguousError(i, "its lines occur too often in the file to look at all of them: give rarer ones with it")
}

// Nearest finds the place in a text that is most similar to the wanted lines. It returns the line
// number, from 1, and the difference: "-" for wanted lines, "+" for lines of the text. It returns 0
// if nothing is similar.
func Nearest(text string, want []string) (line int, diff string) {
	if len(want) == 0 {
		return 0, ""
	}
	p := &placer{ctx: context.Background(), text: newText(text)}
	line, diff, _ = p.findMostSimilar(want)
	return line, diff
}

// patchLine returns the line of the patch that contains line oldIndex of the hunk's old lines, from 0.
func (h *Hunk) patchLine(oldIndex int) int {
	for i, l := range h.Lines {
		if l.Kind == Insert {
			continue
		}
		if oldIndex == 0 {
			return h.firstLine + i
		}
		oldIndex--
	}
	return h.firstLine
}

// lineNumbers matches the line numbers of a unified diff's hunk header, without "@@ " in front.
var lineNumbers = lazyregexp.New(`^-(\d+)(,\d+)? \+\d+(,\d+)?( @@.*)?$`)

// missingContextError returns the error for the "@@" line k of hunk i, which was not found.
func (p *placer) missingContextError(i, k int) error {
	h := &p.section.Hunks[i]
	want := h.Context[k]
	mismatch := &MatchError{file: p.section.Path, hunk: i + 1, patchLine: h.contextLines[k], want: []string{want}, isContext: true, searchedBelow: p.cursor}
	if lineNumbers().MatchString(want) {
		mismatch.hint = `"@@" takes no line numbers: a whole line of the file follows it, or nothing`
		return mismatch
	}
	if at, ok := p.findFirst([]string{want}, 0); ok {
		mismatch.hint = fmt.Sprintf("it is line %d: put hunks in the order of the file", at+1)
		return mismatch
	}
	if at, ok := p.lineContaining(want); ok {
		mismatch.hint = fmt.Sprintf(`"@@ " takes a whole line of the file, and line %d has more: %q`, at+1, clipRest(p.text.line(at), want))
		return mismatch
	}
	mismatch.nearestLine, mismatch.diff, _ = p.findMostSimilar([]string{want})
	return mismatch
}

// linesPerContextCheck is the number of lines handled between two checks of the context.
const linesPerContextCheck = 1 << 14

// isCancelled reports whether the context was cancelled. It checks this only for some lines, to save
// time.
func (p *placer) isCancelled(line int) bool {
	return line%linesPerContextCheck == 0 && p.ctx.Err() != nil
}

// lineContaining returns the first line that contains part. It searches from the cursor on, then from
// the top.
func (p *placer) lineContaining(part string) (int, bool) {
	part = find.FoldedUnicode.Normal(part)
	if part == "" {
		return 0, false
	}
	n := p.text.lines()
	for i := 0; i < n && !p.isCancelled(i); i++ {
		line := (p.cursor + i) % n
		if strings.Contains(find.FoldedUnicode.Normal(p.text.line(line)), part) {
			return line, true
		}
	}
	return 0, false
}

// clipRest cuts a line to the text that it has in addition to part.
func clipRest(line, part string) string {
	part = strings.TrimSpace(part)
	if at, matched := firstDifference(line, part); matched == len(part) {
		return clipAround(line, at)
	}
	return clipAround(line, strings.Index(line, part))
}

const (
	maxShownBefore   = 3  // equal lines shown above the first difference
	maxComparedLines = 20 // lines of the patch that are compared
	maxExtraLines    = 6  // additional lines of the file that are compared
)

// findMostSimilar finds the place in the file that is most similar to the wanted lines. It returns the
// first line shown, from 1, the difference, and the index of the first wanted line that is missing.
// It returns line 0 if nothing is similar.
func (p *placer) findMostSimilar(want []string) (line int, diff string, missing int) {
	start, ok := p.mostEqual(want)
	if !ok {
		start, ok = p.mostSimilar(want)
	}
	if !ok {
		return 0, "", 0
	}
	skip := max(p.firstDifference(want, start)-maxShownBefore, 0, -start) // start is negative if want would begin above the file
	start += skip
	window := want[skip:min(skip+maxComparedLines, len(want))]
	have := make([]string, 0, maxComparedLines+maxExtraLines)
	for i := start; i < min(start+len(window)+maxExtraLines, p.text.lines()); i++ {
		have = append(have, p.text.line(i))
	}
	rows, first := alignWithFile(window, have)
	return start + 1, formatRows(rows), skip + first
}

// firstDifference returns the index of the first wanted line that differs from the file, if the
// first one is at line start.
func (p *placer) firstDifference(want []string, start int) int {
	for i, w := range want {
		at := start + i
		if at < 0 || at >= p.text.lines() || !sameLine(w, p.text.line(at)) {
			return i
		}
	}
	return 0
}

const (
	maxVotes         = 8       // a line of the file counts for at most this many equal wanted lines
	maxSearchedLines = 1 << 20 // only this many lines of the file around the cursor are searched
)

// searchedRange returns the range of lines to search.
func (p *placer) searchedRange() (from, to int) {
	n := min(p.text.lines(), maxSearchedLines)
	from = max(0, min(p.cursor-n/2, p.text.lines()-n))
	return from, from + n
}

// mostEqual returns the place where most wanted lines, without blank ones, are at the right
// distance from each other. Of equally good places it prefers the one nearest to the cursor. Each
// equal line votes for the place at which the wanted lines would start.
func (p *placer) mostEqual(want []string) (start int, ok bool) {
	places := map[string][]int{}
	for i, w := range want {
		w = find.FoldedUnicode.Normal(w)
		if w != "" && len(places[w]) < maxVotes {
			places[w] = append(places[w], i)
		}
	}
	from, to := p.searchedRange()
	first := from - len(want) // start line of the place that votes[0] counts for
	votes := make([]int32, to-first)
	best := 0
	for i := from; i < to && !p.isCancelled(i); i++ {
		for _, k := range places[find.FoldedUnicode.Normal(p.text.line(i))] {
			at := i - k - first
			votes[at]++
			if votes[at] > votes[best] || votes[at] == votes[best] && p.isNearer(at+first, best+first) {
				best = at
			}
		}
	}
	return best + first, votes[best] > 0
}

func (p *placer) isNearer(a, b int) bool { return distance(a, p.cursor) < distance(b, p.cursor) }

func distance(a, b int) int { return max(a-b, b-a) }

const (
	maxSearchedBytes = 4 << 20 // bytes of the file that are searched for a similar line, from the cursor on
	maxComparedBytes = 512     // only this many bytes of a line are compared
	minSimilarity    = 0.4
)

// mostSimilar finds the line most similar to the longest wanted line. It returns the start of the
// place that this implies.
func (p *placer) mostSimilar(want []string) (start int, ok bool) {
	longest := 0
	for i, w := range want {
		if len(strings.TrimSpace(w)) > len(strings.TrimSpace(want[longest])) {
			longest = i
		}
	}
	likeness := newLikeness(want[longest])
	best, at := minSimilarity, -1
	n := p.text.lines()
	for i, budget := 0, maxSearchedBytes; i < n && budget > 0; i++ {
		number := (p.cursor + i) % n // from the cursor down, then from the top
		line := p.text.line(number)
		budget -= len(line) + 1
		if s := likeness.similarity(line); s > best {
			best, at = s, number
		}
	}
	return at - longest, at >= 0
}

// likeness measures how similar lines are to one line, by the runs of three bytes they share.
type likeness struct {
	grams map[string]int
	total int
	count map[string]int // scratch
}

// newLikeness returns a comparison with a line.
func newLikeness(line string) *likeness {
	l := &likeness{grams: map[string]int{}, count: map[string]int{}}
	line = comparedPart(line)
	for i := 0; i+3 <= len(line); i++ {
		l.grams[line[i:i+3]]++
		l.total++
	}
	return l
}

// comparedPart returns the folded beginning of a line that likeness compares.
func comparedPart(line string) string {
	line = find.FoldedUnicode.Normal(line)
	return line[:min(len(line), maxComparedBytes)]
}

// similarity returns how similar a line is, from 0 to 1: twice the number of shared trigrams, divided by the
// number of trigrams of both lines (Dice coefficient).
func (l *likeness) similarity(line string) float64 {
	line = comparedPart(line)
	trigrams := max(len(line)-2, 0)
	ofBoth := trigrams + l.total
	mostShared := min(trigrams, l.total)
	if ofBoth == 0 || 2*mostShared < int(minSimilarity*float64(ofBoth)) {
		return 0
	}
	clear(l.count)
	shared := 0
	for i := 0; i+3 <= len(line); i++ {
		gram := line[i : i+3]
		if l.count[gram] < l.grams[gram] {
			l.count[gram]++
			shared++
		}
	}
	return 2 * float64(shared) / float64(ofBoth)
}
