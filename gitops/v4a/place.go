package v4a

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/find"
	"github.com/agent-ci/agent-ci/policy/clip"
)

// placement is a hunk with its place in a text.
type placement struct {
	at    int    // index of the line at which it starts
	lines []Line // what to keep, remove and insert from there on
}

// spot is the place found for a hunk, with alternative places.
type spot struct {
	placement
	way    find.Tolerance // the comparison in which its lines are equal to the file's
	others []find.Place   // other equally good places, below its "@@" lines
	looser []find.Place   // places where it fits in a looser comparison
	higher []find.Place   // places where it fits above the previous hunk
	// identified reports that an "@@" line identifies the place, instead of only the order of
	// hunks. settled reports that the place is certain, by the end of the file or a line number, so
	// the previous hunk must be above it.
	identified, settled bool
}

// place finds the places of a section's hunks. It returns them sorted, with notes for the model. An
// error is a [*MatchError] or ctx's.
func place(ctx context.Context, t *text, s *Section) ([]placement, []string, error) {
	p := newPlacer(ctx, t, s)
	placed := make([]placement, 0, len(s.Hunks))
	spots := make([]spot, 0, len(s.Hunks))
	for i := range s.Hunks {
		spot, err := p.place(i)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return nil, nil, err
		}
		p.noteLooseContext(spot)
		spots = append(spots, spot)
		placed = spot.appendTo(placed, t.lines())
	}
	if err := p.compare(spots); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(placed, func(a, b placement) int { return a.at - b.at })
	return placed, p.allNotes(), nil
}

// appendTo appends a placement. If the placement reaches the end of the file, insertions after a
// kept last line become a separate placement at the end of the file. So lines keep the order of the
// patch.
func (p placement) appendTo(placed []placement, end int) []placement {
	tail := lastLine(p.lines, Insert) + 1
	if tail == 0 || tail == len(p.lines) || p.lines[tail-1].Kind != Keep {
		return append(placed, p)
	}
	if p.at+len(oldLines(p.lines)) < end {
		return append(placed, p)
	}
	return append(placed, placement{p.at, p.lines[:tail]}, placement{end, p.lines[tail:]})
}

// placer walks through a file hunk by hunk.
type placer struct {
	ctx     context.Context
	text    *text
	seeker  *find.Seeker
	lines   *find.Text // the lines of text; the first has number 1
	section *Section
	cursor  int   // the next hunk starts at this line or below
	starts  []int // start lines of the hunks placed so far

	notes     []string                    // notes about the section, as sentences
	loose     map[find.Tolerance][]string // lines at which hunks with loosely matched context add something, by comparison
	ambiguous []string                    // descriptions of places that are not the only ones
}

// anyWay lists the comparisons for hunks and "@@" lines, the strictest first.
var anyWay = []find.Tolerance{find.Exact, find.TrimmedTrailing, find.TrimmedBothEnds, find.FoldedUnicode}

// newPlacer prepares the search for all hunks of a section in a text.
func newPlacer(ctx context.Context, t *text, s *Section) *placer {
	p := &placer{ctx: ctx, text: t, section: s, loose: map[find.Tolerance][]string{}}
	var wanted [][]string
	for _, h := range s.Hunks {
		wanted = append(wanted, h.Context, oldLines(h.Lines))
	}
	all := make([]string, t.lines())
	for i := range all {
		all[i] = t.line(i)
	}
	p.seeker = find.NewSeeker(wanted...)
	p.lines = p.seeker.Text(all)
	return p
}

// find searches the file for lines, from line number from (0 is the first) downwards. fit are the
// places in the first of the comparisons ways that has any, others those in looser ones.
func (p *placer) find(lines []string, from int, ways ...find.Tolerance) (fit, others []find.Place) {
	if len(lines) > 0 && p.text.hasByteOrderMark { // a byte order mark belongs to no line of the file
		lines = append([]string{strings.TrimPrefix(lines[0], byteOrderMark)}, lines[1:]...)
	}
	return p.lines.Find(find.Block{Lines: lines}, find.ID(from+1), ways...)
}

// seek finds the first place of lines, from line number from downwards.
func (p *placer) seek(lines []string, from int) (at int, ok bool) {
	fit, _ := p.find(lines, from, anyWay...)
	if len(fit) == 0 {
		return 0, false
	}
	return line(fit[0]), true
}

// line returns the first line of a place, counted from 0.
func line(p find.Place) int { return int(p.FirstLine) - 1 }

// place finds where hunk i applies and moves the cursor below it. If the hunk only adds lines, the
// cursor stays below its "@@" lines. Errors are written for the model.
func (p *placer) place(i int) (spot, error) {
	h := &p.section.Hunks[i]
	start := p.cursor
	n, err := p.narrow(i)
	old := oldLines(h.Lines)
	switch {
	case p.seeker.OutOfSteps():
		return spot{}, p.tooMany(i)
	case err != nil:
		return spot{}, err
	case len(old) == 0:
		if n.above != nil {
			return spot{}, p.missingContext(i, n.above.context)
		}
		s := spot{placement: placement{p.additionLine(h), h.Lines}, identified: true}
		if !h.EndOfFile {
			s.others, s.looser = n.others, n.looser
		}
		return s, nil
	}
	found, ok := p.locate(h, n, h.Lines)
	if last := len(old) - 1; !ok && old[last] == "" && !p.section.bare {
		found, ok = p.locate(h, n, withoutLastEmpty(h.Lines))
	}
	if ok && n.above != nil {
		p.judge(&found, n.above, old, start)
	}
	if ok && !found.identified && !found.settled {
		found.higher = p.placesAbove(oldLines(found.lines), start)
	}
	switch {
	case p.seeker.OutOfSteps():
		return spot{}, p.tooMany(i)
	case !ok:
		return spot{}, p.mismatch(i)
	}
	p.cursor = found.at + len(oldLines(found.lines))
	p.starts = append(p.starts, found.at)
	return found, nil
}

// placesAbove returns places above the previous hunk where the old lines fit and no hunk was
// placed. The hunks of the patch may be out of order.
func (p *placer) placesAbove(old []string, start int) []find.Place {
	if start == 0 {
		return nil
	}
	fit, _ := p.find(old, 0, anyWay...)
	return slices.DeleteFunc(fit, func(place find.Place) bool { return line(place) >= start || slices.Contains(p.starts, line(place)) })
}

// judge decides whether an "@@" line above the previous hunk still identifies this hunk's place. It
// does if no other line is like it, and the hunk's lines do not also occur between that line and
// the previous hunk.
func (p *placer) judge(s *spot, above *parent, old []string, start int) {
	at, hidden := p.seek(old, above.line+1)
	hidden = hidden && at < start
	s.identified = above.only && !hidden
	if first, _ := p.seek(old, 0); first < start || len(s.others)+len(s.looser) > 0 {
		p.note(fmt.Sprintf(`an "@@" line names line %d, above the hunk before it; the hunk was looked for further below.`, above.line+1))
	}
}

// contextResult is the result of a hunk's "@@" lines.
type contextResult struct {
	found  bool    // an "@@" line was found
	number int     // line number, from 1, that an "@@" line gives instead of text; or 0
	above  *parent // the last "@@" line that is only found above the previous hunk

	others, looser []find.Place // further places of the last "@@" line
}

// parent is an "@@" line found above the cursor.
type parent struct {
	context, line int
	only          bool // no other line is like it
}

// narrow moves the cursor below the hunk's "@@" lines, one after the other.
func (p *placer) narrow(i int) (n contextResult, err error) {
	h := &p.section.Hunks[i]
	for k, context := range h.Context {
		if p.section.bare && k == 0 {
			if n.others, n.found = p.narrowBare(context); n.found {
				continue
			}
		}
		fit, looser := p.find([]string{context}, p.cursor, anyWay...)
		number := lineNumbers.FindStringSubmatch(context)
		switch {
		case len(fit) > 0:
			p.cursor, n = line(fit[0])+1, contextResult{found: true, others: fit[1:], looser: looser}
		case number != nil && (len(oldLines(h.Lines)) > 0 || p.text.lines() == 0):
			n.number, _ = strconv.Atoi(number[1])
		case p.section.bare && !h.stacked:
			p.note(fmt.Sprintf(`the "@@" line %q is not in the file and was passed over.`, clip.Bytes(context, shownBytes)))
		default:
			in := p.above(context)
			if in == nil || p.section.bare || n.above != nil && in.line < n.above.line {
				return n, p.missingContext(i, k)
			}
			in.context, n.above = k, in
		}
	}
	return n, nil
}

// note adds a note, unless it is already there.
func (p *placer) note(note string) {
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
}

// above finds an "@@" line above the cursor. Of its first places in the file, it takes the last. It
// returns nil if there is none.
func (p *placer) above(context string) *parent {
	fit, looser := p.find([]string{context}, 0, anyWay...)
	if len(fit) == 0 {
		return nil
	}
	return &parent{line: line(fit[len(fit)-1]), only: len(fit)+len(looser) == 1}
}

// narrowBare moves the cursor below the first "@@" line of a hunk in a bare diff, unless that line
// is above the cursor. named reports whether the line exists, others its further places.
func (p *placer) narrowBare(context string) (others []find.Place, named bool) {
	fit, _ := p.find([]string{context}, 0, anyWay...)
	if len(fit) > 0 && line(fit[0]) >= p.cursor {
		p.cursor, others = line(fit[0])+1, fit[1:]
	}
	return others, len(fit) > 0
}

// additionLine returns the line at which a hunk without old lines inserts: below its "@@" lines, or
// at the end of the file.
func (p *placer) additionLine(h *Hunk) int {
	end := p.text.lines()
	switch {
	case p.section.bare && h.EndOfFile:
		p.cursor = end
	case p.section.bare || (len(h.Context) > 0 && !h.EndOfFile):
		return p.cursor
	}
	return end
}

// locate finds the old lines of a hunk. Lines for the end of the file may be elsewhere only in a
// bare diff, and then locate adds a note. It fails for them in an envelope.
func (p *placer) locate(h *Hunk, n contextResult, lines []Line) (s spot, ok bool) {
	old := oldLines(lines)
	s = spot{placement: placement{p.cursor, lines}, identified: n.found}
	if len(old) == 0 {
		return s, true
	}
	if h.EndOfFile {
		end := p.text.lines() - len(old)
		if p.section.bare && p.text.line(p.text.lines()-1) == "" && old[len(old)-1] != "" {
			end-- // the last line is the empty one after the final line ending
		}
		if fit, _ := p.find(old, max(end, 0), anyWay...); len(fit) > 0 && end >= p.cursor {
			s.at, s.way, s.settled = line(fit[0]), fit[0].Tolerance, true
			return s, true
		}
		if !p.section.bare {
			return s, false
		}
	}
	fit, looser := p.find(old, p.cursor, anyWay...)
	if len(fit) == 0 {
		return s, false
	}
	if n.number > 0 && len(fit) > 1 {
		fit, s.identified = p.byNumber(old, fit, n.number-1), true
	}
	if h.EndOfFile {
		p.note(fmt.Sprintf("the lines of a hunk with %q are at line %d, which is not the end of the file.", endOfFileMarker, line(fit[0])+1))
	}
	s.settled = line(fit[0]) == n.number-1
	s.at, s.way, s.others, s.looser = line(fit[0]), fit[0].Tolerance, fit[1:], looser
	return s, true
}

// byNumber returns the places with the one nearest to a line number first. If few has as many as a
// search returns, it searches on, so that it finds the nearest of all.
func (p *placer) byNumber(old []string, few []find.Place, number int) []find.Place {
	way, all := few[0].Tolerance, few
	at, _ := p.find(old, max(number, p.cursor), way)
	if len(at) == 0 || line(at[0]) != number {
		for more := few; len(more) == find.MaxPlaces; all = append(all, more...) {
			more, _ = p.find(old, line(more[find.MaxPlaces-1])+1, way)
		}
		at = []find.Place{slices.MinFunc(all, func(a, b find.Place) int { return distance(line(a), number) - distance(line(b), number) })}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(other find.Place) bool { return other == at[0] })
	return append(at[:1:1], all[:min(len(all), find.MaxPlaces-1)]...)
}

// compare looks for hunks that fit several places between the previous hunk and the last possible
// place of the next hunk. It returns an error for such a hunk without an "@@" line. For others it
// adds a note. It goes from the last hunk to the first.
func (p *placer) compare(spots []spot) error {
	below := p.text.lines() // the last line at which the hunk below can start
	var descriptions []string
	for i, s := range slices.Backward(spots) {
		size := len(oldLines(s.lines))
		own := s.at
		if size == 0 { // it only adds lines, below the line that an "@@" line names
			own--
		}
		if size == 0 && len(s.others)+len(s.looser) == 0 {
			continue
		}
		latest := own
		within := func(places []find.Place) (in []find.Place) {
			for _, other := range places {
				if at := line(other); at+size <= below && at != own {
					in, latest = append(in, other), max(latest, at)
				}
			}
			return in
		}
		others := within(s.others)
		looser := within(s.looser)
		if len(others) > 0 && !s.identified {
			return p.unclear(i, fmt.Sprintf(`its lines are at line %d and %s: name a line above those that are meant, "@@ " and the whole line`, s.at+1, numbers(others)))
		}
		switch {
		case len(others) > 0:
			descriptions = append(descriptions, fmt.Sprintf("line %d (%s fits too)", own+1, numbers(others)))
		case len(looser) > 0:
			descriptions = append(descriptions, fmt.Sprintf("line %d (%s fits too, with %s)", own+1, numbers(looser), looser[0].Tolerance))
		case len(s.higher) > 0:
			descriptions = append(descriptions, fmt.Sprintf("line %d (%s fits too, above the hunk before)", own+1, numbers(s.higher)))
		}
		switch below -= size; {
		case s.settled:
			below = s.at
		case len(s.others) < find.MaxPlaces-1 && len(s.looser) < find.MaxPlaces:
			below = latest
		}
	}
	slices.Reverse(descriptions)
	p.ambiguous = descriptions
	return nil
}

// numbers formats the line numbers of places.
func numbers(places []find.Place) string {
	var texts []string
	for _, at := range places {
		texts = append(texts, fmt.Sprintf("line %d", at.FirstLine))
	}
	return strings.Join(clip.List(texts, find.MaxPlaces-2), ", ")
}

// maxTold is the largest number of hunks listed in a note.
const maxTold = 40

// allNotes returns the notes about ambiguous and loosely matched hunks, then all others.
func (p *placer) allNotes() (notes []string) {
	list := func(places []string) string {
		if more := len(places) - maxTold; more > 0 {
			places = append(places[:maxTold:maxTold], fmt.Sprintf("%d more", more))
		}
		return strings.Join(places, ", ")
	}
	if len(p.ambiguous) > 0 {
		notes = append(notes, fmt.Sprintf("a hunk was applied where others may be meant: %s. Make sure that the place is right.", list(p.ambiguous)))
	}
	for _, way := range slices.Sorted(maps.Keys(p.loose)) {
		notes = append(notes, fmt.Sprintf("a hunk fits %s only with %s; what it adds stands as the patch has it, so look at that.", list(p.loose[way]), way))
	}
	return append(notes, p.notes...)
}

// withoutLastEmpty returns the lines without an empty last old line, which the file does not have,
// and without an empty last new line. A kept line that is last on one side only becomes an
// insertion or a removal.
func withoutLastEmpty(lines []Line) []Line {
	lastOld, lastNew := lastLine(lines, Insert), lastLine(lines, Remove)
	if lastOld == lastNew {
		return slices.Delete(slices.Clone(lines), lastOld, lastOld+1)
	}
	out := make([]Line, 0, len(lines))
	for i, l := range lines {
		switch {
		case i == lastOld && l.Kind == Keep:
			l.Kind = Insert
		case i == lastNew && l.Kind == Keep && l.Text == "":
			l.Kind = Remove
		case i == lastOld, i == lastNew && l.Text == "":
			continue
		}
		out = append(out, l)
	}
	return out
}

// lastLine returns the index of the last line whose kind is not not, or -1.
func lastLine(lines []Line, not Kind) int {
	i := len(lines) - 1
	for i >= 0 && lines[i].Kind == not {
		i--
	}
	return i
}

// noteLooseContext records a hunk that adds lines in loosely matched context: the added lines may
// have the same mistake as the context. Blanks at line ends do not count.
func (p *placer) noteLooseContext(s spot) {
	adds := slices.ContainsFunc(s.lines, func(l Line) bool { return l.Kind == Insert && strings.TrimSpace(l.Text) != "" })
	if adds && s.way > find.TrimmedTrailing {
		p.loose[s.way] = append(p.loose[s.way], fmt.Sprintf("line %d", s.at+1))
	}
}
