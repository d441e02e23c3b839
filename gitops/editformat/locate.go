package editformat

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/clip"
)

// hit is a run of lines of a block at its place.
type hit struct {
	find.Place
	lines  []v4a.Line
	margin string
	how    string // what was left aside for it to fit, or nothing
	others string // where it fits too, with more left aside, or nothing
}

// reading is one way to read a block.
type reading struct {
	lines []v4a.Line
	ways  []find.Tolerance // to look for it
	how   string
}

var (
	anyWay   = []find.Tolerance{find.Exact, find.TrimmedTrailing, find.Indented}
	inPlace  = anyWay[:2] // nothing may stand further in or out
	atEnds   = "without the blank lines at its ends"
	leftOver = "with the blank in front of its unchanged lines left out"
)

// newSeeker knows the lines of all blocks.
func newSeeker(edits []Edit) *find.Seeker {
	var wanted [][]string
	for _, e := range edits {
		for _, lines := range append([][]v4a.Line{e.lines, e.raw}, e.pieces...) {
			wanted = append(wanted, oldTexts(lines))
		}
	}
	return find.NewSeeker(wanted...)
}

// oldTexts returns the lines that a file must contain.
func oldTexts(lines []v4a.Line) []string {
	var texts []string
	for _, l := range lines {
		if l.Kind != v4a.Insert {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

// locate finds the unique place of a block in a file. why explains an ambiguous place. A block with
// omitted lines has several hits. Both are empty if the block does not fit.
func (a *applier) locate(f *file, e *Edit) (hits []hit, why string) {
	for _, r := range []reading{
		{e.lines, anyWay, ""},
		{e.raw, inPlace, leftOver},
		{withoutBlankEnds(e.lines), anyWay, atEnds},
		{withoutBlankEnds(e.raw), inPlace, atEnds},
	} {
		h, why := a.seek(f, r)
		if why != "" {
			return nil, why
		}
		if h != nil {
			return []hit{*h}, ""
		}
	}
	return a.locatePieces(f, e)
}

// seek finds the only place of lines.
func (a *applier) seek(f *file, r reading) (*hit, string) {
	texts := oldTexts(r.lines)
	if len(texts) == 0 {
		return nil, ""
	}
	if f.mark != "" {
		texts[0] = strings.TrimPrefix(texts[0], byteOrderMark)
	}
	h := hit{lines: r.lines, margin: margin(r.lines)}
	places, others := f.Find(find.Block{Lines: texts, Margin: h.margin}, 0, r.ways...)
	switch {
	case a.OutOfSteps():
		return nil, "its lines occur too often in the file to look for the place; give lines with it that are rare"
	case len(places) > 1:
		return nil, fmt.Sprintf("it fits more than one place: %s; give lines above or below with it, so that only one is meant", f.numbers(places))
	case len(places) == 0:
		return nil, ""
	}
	h.Place, h.how = places[0], r.how
	if left := h.Tolerance.String(); left != "" {
		h.how = strings.TrimPrefix(r.how+" and with "+left, " and ")
	}
	if h.Tolerance != find.Indented {
		h.margin = ""
	}
	if len(others) > 0 {
		h.others = fmt.Sprintf("%s fits too, with %s", f.numbers(others), others[0].Tolerance)
	}
	return &h, ""
}

// numbers formats the line numbers of places before all edits.
func (f *file) numbers(places []find.Place) string {
	var told []string
	for _, at := range places {
		if at.FirstLine > f.was {
			told = append(told, "what a block above adds")
			continue
		}
		told = append(told, fmt.Sprintf("line %d", at.FirstLine))
	}
	return strings.Join(clip.List(told, find.MaxPlaces-2), ", ")
}

// margin returns the blanks common to the beginning of all lines.
func margin(lines []v4a.Line) string {
	common, found := "", false
	for _, l := range lines {
		text := strings.TrimLeftFunc(l.Text, unicode.IsSpace)
		if text == "" {
			continue
		}
		blanks := l.Text[:len(l.Text)-len(text)]
		if !found {
			common, found = blanks, true
		}
		same := 0
		for same < min(len(common), len(blanks)) && common[same] == blanks[same] {
			same++
		}
		common = common[:same]
	}
	return common
}

// withoutBlankEnds removes blank lines at the ends of a block's old lines. It returns nil if there
// are none.
func withoutBlankEnds(lines []v4a.Line) []v4a.Line {
	isText := func(l v4a.Line) bool { return l.Kind != v4a.Insert && strings.TrimSpace(l.Text) != "" }
	first := slices.IndexFunc(lines, isText)
	if first < 0 {
		return nil
	}
	last := len(lines) - 1
	for !isText(lines[last]) {
		last--
	}
	out := make([]v4a.Line, 0, len(lines))
	for i, l := range lines {
		if l.Kind == v4a.Insert || i >= first && i <= last {
			out = append(out, l)
		}
	}
	if len(out) == len(lines) {
		return nil
	}
	return out
}

// locatePieces finds the places of a block's pieces between "..." lines. Every piece must be unique
// and below the one before.
func (a *applier) locatePieces(f *file, e *Edit) (hits []hit, why string) {
	var below find.ID
	for i, lines := range e.pieces {
		h, why := a.seek(f, reading{lines, inPlace, `with lines left out at "..."`})
		if why != "" {
			return nil, fmt.Sprintf(`part %d of it, between lines "...": %s`, i+1, why)
		}
		if h == nil || i > 0 && !f.Follows(below, h.FirstLine) {
			return nil, ""
		}
		below = h.FirstLine
		for range len(oldTexts(lines)) - 1 {
			below = f.Next(below)
		}
		hits = append(hits, *h)
	}
	return hits, ""
}

// mismatch explains a block without a place, with the most similar lines.
func (a *applier) mismatch(f *file, e *Edit) string {
	if a.told++; a.told > shownMisfits {
		return "its lines are not in the file"
	}
	text := f.text()
	if was := a.was[f.path]; was != nil {
		text = *was
	}
	want := oldTexts(e.lines)
	var b strings.Builder
	b.WriteString("its lines are not in the file")
	if fresh := newTexts(e.lines); !isBlank(fresh) && strings.Contains(text, strings.Join(fresh, "\n")) {
		b.WriteString("; what it puts in their place is there already")
	}
	line, diff := v4a.Nearest(text, want)
	if line == 0 {
		return b.String() + ", nor anything like them:\n" + v4a.Excerpt(want)
	}
	fmt.Fprintf(&b, "\nnearest place: line %d (- expected by the block, + in the file)\n%s", line, diff)
	return b.String()
}
