package editformat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// hit is a run of lines of a block at its place.
type hit struct {
	place
	lines  []v4a.Line
	margin string
	how    string // what was left aside for it to fit, or nothing
}

// reading is one way to read a block.
type reading struct {
	lines []v4a.Line
	loose pass // the loosest pass in which it is looked for
	how   string
}

var (
	inFull   = []string{"", "with blanks at the ends of lines left aside", "with another indentation"}
	atEnds   = "without the blank lines at its ends"
	leftOver = "with the blank in front of its unchanged lines left out"
)

// locate finds the only place of a block in a file, or says why it is not to be had.
// A block that leaves lines out has several places. It returns nothing where the
// block does not fit.
func (a *applier) locate(f *file, e *Edit) (hits []hit, why string) {
	for _, r := range []reading{
		{e.lines, indented, ""},
		{e.raw, trailing, leftOver},
		{withoutBlankEnds(e.lines), indented, atEnds},
		{withoutBlankEnds(e.raw), trailing, atEnds},
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

// seek finds the only place of lines, the stricter passes first.
func (a *applier) seek(f *file, r reading) (*hit, string) {
	texts := oldTexts(r.lines)
	if len(texts) == 0 {
		return nil, ""
	}
	if f.mark != "" {
		texts[0] = strings.TrimPrefix(texts[0], byteOrderMark)
	}
	h := hit{lines: r.lines}
	for p := exact; p <= r.loose; p++ {
		if p == indented {
			h.margin = margin(r.lines)
		}
		places := a.find(f, texts, p, h.margin)
		switch {
		case a.steps < 0:
			return nil, "its lines occur too often in the file to look for the place; give lines with it that are rare"
		case len(places) > 1:
			return nil, fmt.Sprintf("it fits more than one place: %s; give lines above or below with it, so that only one is meant", f.numbers(places))
		case len(places) == 1:
			h.place, h.how = places[0], strings.Join(slices.DeleteFunc([]string{r.how, inFull[p]}, func(how string) bool { return how == "" }), " and ")
			return &h, ""
		}
	}
	return nil, ""
}

// numbers tells places by the numbers that their lines have before all edits.
func (f *file) numbers(places []place) string {
	var told []string
	for i, at := range places {
		switch was := f.lines[at.first].was; {
		case i == fewPlaces-1:
			told = append(told, "…")
		case was == 0:
			told = append(told, "what a block above adds")
		default:
			told = append(told, fmt.Sprintf("line %d", was))
		}
	}
	return strings.Join(told, ", ")
}

// withoutBlankEnds leaves out blank lines above and below the others of a block
// that the file is to have; nothing where there are none.
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

// locatePieces finds the places of what a block says between the lines that stand
// for others: each piece has one place only, and they are in order.
func (a *applier) locatePieces(f *file, e *Edit) (hits []hit, why string) {
	var below int32
	for i, lines := range e.pieces {
		h, why := a.seek(f, reading{lines, trailing, `with lines left out at "..."`})
		if why != "" {
			return nil, fmt.Sprintf(`part %d of it, between lines "...": %s`, i+1, why)
		}
		if h == nil || i > 0 && !a.follows(f, below, h.first) {
			return nil, ""
		}
		below = h.first
		for range len(oldTexts(lines)) - 1 {
			below = f.lines[below].next
		}
		hits = append(hits, *h)
	}
	return hits, ""
}

// follows reports whether a line stands below another one.
func (a *applier) follows(f *file, above, below int32) bool {
	for id := f.lines[above].next; id != 0; id = f.lines[id].next {
		if a.steps--; id == below {
			return true
		}
	}
	return false
}

// mismatch says why a block has no place, with the lines that are most like it.
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
