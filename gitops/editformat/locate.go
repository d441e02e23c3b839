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

// hit is a place of a block's lines in a file.
type hit struct {
	find.Place
	lines  []v4a.Line
	margin string // the indentation that all lines share, to be replaced by the file's
	note   string // which tolerance was needed, or ""
	others string // places where a looser comparison also fits, or ""
}

// reading is one of several interpretations of a block's lines.
type reading struct {
	lines      []v4a.Line
	tolerances []find.Tolerance // comparisons to search with
	note       string           // description of the interpretation, for a note
}

var (
	allTolerances           = []find.Tolerance{find.Exact, find.TrimmedTrailing, find.Indented}
	sameIndentation         = allTolerances[:2] // without different indentation
	withoutBlankEndsNote    = "without the blank lines at its ends"
	withoutLeadingBlankNote = "with the blank in front of its unchanged lines left out"
)

// newSeeker returns a seeker prepared for the lines of all blocks.
func newSeeker(edits []Edit) *find.Seeker {
	var wanted [][]string
	for _, e := range edits {
		for _, lines := range append([][]v4a.Line{e.lines, e.raw}, e.pieces...) {
			wanted = append(wanted, v4a.OldLines(lines))
		}
	}
	return find.NewSeeker(wanted...)
}

// locate returns the place of a block in a file: one hit, or several for a block with omitted
// lines. For an ambiguous block it returns only a reason. For a block that does not fit, it returns
// neither.
func (a *applier) locate(f *file, e *Edit) (hits []hit, reason string) {
	for _, r := range []reading{
		{e.lines, allTolerances, ""},
		{e.raw, sameIndentation, withoutLeadingBlankNote},
		{withoutBlankEnds(e.lines), allTolerances, withoutBlankEndsNote},
		{withoutBlankEnds(e.raw), sameIndentation, withoutBlankEndsNote},
	} {
		h, reason := a.seek(f, r)
		if reason != "" {
			return nil, reason
		}
		if h != nil {
			return []hit{*h}, ""
		}
	}
	return a.locatePieces(f, e)
}

// seek finds the only place of a reading's lines. It returns a reason if there are several places, or
// if the search takes too long. It returns nil and "" if there is no place.
func (a *applier) seek(f *file, r reading) (*hit, string) {
	texts := v4a.OldLines(r.lines)
	if len(texts) == 0 {
		return nil, ""
	}
	if f.mark != "" {
		texts[0] = strings.TrimPrefix(texts[0], byteOrderMark)
	}
	h := hit{lines: r.lines, margin: commonIndentation(r.lines)}
	places, others := f.Find(find.Block{Lines: texts, Margin: h.margin}, 0, r.tolerances...)
	switch {
	case a.OutOfSteps():
		return nil, "its lines occur too often in the file to look for the place; give lines with it that are rare"
	case len(places) > 1:
		return nil, fmt.Sprintf("it fits more than one place: %s; give lines above or below with it, so that only one is meant", f.numbers(places))
	case len(places) == 0:
		return nil, ""
	}
	h.Place, h.note = places[0], r.note
	if difference := h.Tolerance.String(); difference != "" {
		h.note = strings.TrimPrefix(r.note+" and with "+difference, " and ") // r.note may be ""
	}
	if h.Tolerance != find.Indented {
		h.margin = ""
	}
	if len(others) > 0 {
		h.others = fmt.Sprintf("%s fits too, with %s", f.numbers(others), others[0].Tolerance)
	}
	return &h, ""
}

// numbers formats the line numbers of places, as in the file before all edits.
func (f *file) numbers(places []find.Place) string {
	var texts []string
	for _, at := range places {
		if at.FirstLine > f.was {
			texts = append(texts, "what a block above adds")
			continue
		}
		texts = append(texts, fmt.Sprintf("line %d", at.FirstLine))
	}
	return clip.List(texts, find.MaxPlaces-2)
}

// commonIndentation returns the indentation that all lines have in common.
func commonIndentation(lines []v4a.Line) string {
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

// withoutBlankEnds removes blank old lines at both ends of a block. It returns nil if there are
// none to remove, or if all old lines are blank.
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

// locatePieces finds the places of the parts between "..." lines. Every part must fit one place only,
// which must be below the previous part. If a part fits several places, locatePieces returns only a
// reason. If a part fits nowhere or above the previous one, it returns neither.
func (a *applier) locatePieces(f *file, e *Edit) (hits []hit, reason string) {
	var last find.ID // the last line of the previous part
	for i, lines := range e.pieces {
		h, reason := a.seek(f, reading{lines, sameIndentation, `with lines left out at "..."`})
		if reason != "" {
			return nil, fmt.Sprintf(`part %d of it, between lines "...": %s`, i+1, reason)
		}
		if h == nil {
			return nil, ""
		}
		if i > 0 && !f.Follows(last, h.FirstLine) {
			return nil, ""
		}
		last = h.FirstLine
		for range len(v4a.OldLines(lines)) - 1 {
			last = f.Next(last)
		}
		hits = append(hits, *h)
	}
	return hits, ""
}

// mismatchReason returns the reason for a block that does not fit, with the most similar lines of the
// file. For later misfits it omits those lines.
func (a *applier) mismatchReason(f *file, e *Edit) string {
	if a.misfits++; a.misfits > shownMisfits {
		return "its lines are not in the file"
	}
	text := f.text()
	if before := a.before[f.path]; before != nil {
		text = *before
	}
	want := v4a.OldLines(e.lines)
	var b strings.Builder
	b.WriteString("its lines are not in the file")
	if fresh := v4a.NewLines(e.lines); !isBlank(fresh) && strings.Contains(text, strings.Join(fresh, "\n")) {
		b.WriteString("; what it puts in their place is there already")
	}
	line, diff := v4a.Nearest(text, want)
	if line == 0 {
		return b.String() + ", nor anything like them:\n" + v4a.Excerpt(want)
	}
	fmt.Fprintf(&b, "\nnearest place: line %d (- expected by the block, + in the file)\n%s", line, diff)
	return b.String()
}
