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

// location is the place found for a hunk, with alternative places.
type location struct {
	placement
	tolerance     find.Tolerance // the comparison in which its lines are equal to the file's
	others        []find.Place   // other equally good places, below its "@@" lines
	looser        []find.Place   // places where it fits in a looser comparison
	abovePrevious []find.Place   // places where it fits above the previous hunk
	// isIdentified reports that an "@@" line identifies the place, instead of only the order of
	// hunks. isCertain reports that the place is certain, by the end of the file or a line number, so
	// the previous hunk must be above it.
	isIdentified, isCertain bool
}

// placeHunks finds the places of a section's hunks. It returns them sorted, with notes for the model. An
// error is a [*MatchError] or ctx's.
func placeHunks(ctx context.Context, t *text, s *Section) ([]placement, []string, error) {
	p := newPlacer(ctx, t, s)
	placed := make([]placement, 0, len(s.Hunks))
	spots := make([]location, 0, len(s.Hunks))
	for i := range s.Hunks {
		spot, err := p.placeHunk(i)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return nil, nil, err
		}
		p.noteLooseContext(spot)
		spots = append(spots, spot)
		placed = spot.appendTo(placed, t.lines())
	}
	if err := p.checkAmbiguity(spots); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(placed, func(a, b placement) int { return a.at - b.at })
	return placed, p.allNotes(), nil
}

// appendTo appends a placement. If the placement reaches the end of the file, insertions after a
// kept last line become a separate placement at the end of the file. So lines keep the order of the
// patch.
func (p placement) appendTo(placed []placement, end int) []placement {
	tail := lastLineExcept(p.lines, Insert) + 1
	if tail == 0 || tail == len(p.lines) || p.lines[tail-1].Kind != Keep {
		return append(placed, p)
	}
	if p.at+len(OldLines(p.lines)) < end {
		return append(placed, p)
	}
	return append(placed, placement{p.at, p.lines[:tail]}, placement{end, p.lines[tail:]})
}

// placer walks through a file hunk by hunk.
type placer struct {
	ctx          context.Context
	text         *text
	seeker       *find.Seeker
	lines        *find.Text // the lines of text; the first has number 1
	section      *Section
	cursor       int   // the next hunk starts at this line or below
	placedStarts []int // start lines of the hunks placed so far

	notes           []string                    // notes about the section, as sentences
	looseLines      map[find.Tolerance][]string // lines at which hunks with loosely matched context add something, by comparison
	ambiguousPlaces []string                    // descriptions of places that are not the only ones
}

// allTolerances lists the comparisons for hunks and "@@" lines, the strictest first.
var allTolerances = []find.Tolerance{find.Exact, find.TrimmedTrailing, find.TrimmedBothEnds, find.FoldedUnicode}

// newPlacer prepares the search for all hunks of a section in a text.
func newPlacer(ctx context.Context, t *text, s *Section) *placer {
	p := &placer{ctx: ctx, text: t, section: s, looseLines: map[find.Tolerance][]string{}}
	var wanted [][]string
	for _, h := range s.Hunks {
		wanted = append(wanted, h.Context, OldLines(h.Lines))
	}
	p.seeker = find.NewSeeker(wanted...)
	p.lines = p.seeker.Text(t.lines())
	for i := range t.lines() {
		p.lines.Insert(0, t.line(i))
	}
	return p
}

// find searches the file for lines, from line number from (0 is the first) downwards. fit are the
// places in the strictest comparison that has any, others those in looser ones.
func (p *placer) find(lines []string, from int) (fit, others []find.Place) {
	return p.findWith(lines, from, allTolerances...)
}

// findWith is find with some of the comparisons only.
func (p *placer) findWith(lines []string, from int, ways ...find.Tolerance) (fit, others []find.Place) {
	if len(lines) > 0 && p.text.hasByteOrderMark { // a byte order mark belongs to no line of the file
		lines = append([]string{strings.TrimPrefix(lines[0], byteOrderMark)}, lines[1:]...)
	}
	return p.lines.Find(find.Block{Lines: lines}, find.ID(from+1), ways...)
}

// findFirst finds the first place of lines, from line number from downwards.
func (p *placer) findFirst(lines []string, from int) (at int, ok bool) {
	fit, _ := p.find(lines, from)
	if len(fit) == 0 {
		return 0, false
	}
	return firstLineOf(fit[0]), true
}

// firstLineOf returns the first line of a place, counted from 0.
func firstLineOf(p find.Place) int { return int(p.FirstLine) - 1 }

// placeHunk finds where hunk i applies and moves the cursor below it. If the hunk only adds lines, the
// cursor stays below its "@@" lines. Errors are written for the model.
func (p *placer) placeHunk(i int) (location, error) {
	h := &p.section.Hunks[i]
	start := p.cursor
	contexts, err := p.findContexts(i)
	old := OldLines(h.Lines)
	switch {
	case p.seeker.OutOfSteps():
		return location{}, p.tooFrequentError(i)
	case err != nil:
		return location{}, err
	case len(old) == 0:
		if contexts.parent != nil {
			return location{}, p.missingContextError(i, contexts.parent.context)
		}
		s := location{placement: placement{p.additionLine(h), h.Lines}, isIdentified: true}
		if !h.EndOfFile {
			s.others, s.looser = contexts.others, contexts.looser
		}
		return s, nil
	}
	found, ok := p.findOldLines(h, contexts, h.Lines)
	endsEmpty := old[len(old)-1] == ""
	if !ok && endsEmpty && !p.section.isBare {
		found, ok = p.findOldLines(h, contexts, withoutLastEmpty(h.Lines))
	}
	if ok && contexts.parent != nil {
		p.checkParent(&found, contexts.parent, old, start)
	}
	if ok && !found.isIdentified && !found.isCertain {
		found.abovePrevious = p.placesAbove(OldLines(found.lines), start)
	}
	switch {
	case p.seeker.OutOfSteps():
		return location{}, p.tooFrequentError(i)
	case !ok:
		return location{}, p.mismatchError(i)
	}
	p.cursor = found.at + len(OldLines(found.lines))
	p.placedStarts = append(p.placedStarts, found.at)
	return found, nil
}

// placesAbove returns places above the previous hunk where the old lines fit and no hunk was
// placed. The hunks of the patch may be out of order.
func (p *placer) placesAbove(old []string, start int) []find.Place {
	if start == 0 {
		return nil
	}
	fit, _ := p.find(old, 0)
	return slices.DeleteFunc(fit, func(place find.Place) bool {
		return firstLineOf(place) >= start || slices.Contains(p.placedStarts, firstLineOf(place))
	})
}

// checkParent decides whether an "@@" line above the previous hunk still identifies this hunk's place. It
// does if no other line is like it, and the hunk's lines do not also occur between that line and
// the previous hunk.
func (p *placer) checkParent(found *location, parent *parentContext, old []string, start int) {
	at, isBelow := p.findFirst(old, parent.line+1)
	isElsewhere := isBelow && at < start
	found.isIdentified = parent.isUnique && !isElsewhere
	if first, _ := p.findFirst(old, 0); first < start || len(found.others)+len(found.looser) > 0 {
		p.note(fmt.Sprintf(`an "@@" line names line %d, above the hunk before it; the hunk was looked for further below.`, parent.line+1))
	}
}

// contextResult is the result of a hunk's "@@" lines.
type contextResult struct {
	found  bool           // an "@@" line was found
	number int            // line number, from 1, that an "@@" line gives instead of text; or 0
	parent *parentContext // the last "@@" line that is only found above the previous hunk

	others, looser []find.Place // further places of the last "@@" line
}

// parentContext is an "@@" line found above the cursor.
type parentContext struct {
	context, line int
	isUnique      bool // no other line is like it
}

// findContexts moves the cursor below the hunk's "@@" lines, one after the other.
func (p *placer) findContexts(i int) (contexts contextResult, err error) {
	h := &p.section.Hunks[i]
	for k, context := range h.Context {
		if p.section.isBare && k == 0 {
			if contexts.others, contexts.found = p.findBareContext(context); contexts.found {
				continue
			}
		}
		fit, looser := p.find([]string{context}, p.cursor)
		number := lineNumbers().FindStringSubmatch(context)
		switch {
		case len(fit) > 0:
			p.cursor, contexts = firstLineOf(fit[0])+1, contextResult{found: true, others: fit[1:], looser: looser}
		case number != nil && (len(OldLines(h.Lines)) > 0 || p.text.lines() == 0):
			contexts.number, _ = strconv.Atoi(number[1])
		case p.section.isBare && !h.hasSeveralContexts:
			p.note(fmt.Sprintf(`the "@@" line %q is not in the file and was passed over.`, clip.Bytes(context, maxShownBytes)))
		default:
			parent, previous := p.findParent(context), contexts.parent
			if parent == nil || p.section.isBare {
				return contexts, p.missingContextError(i, k)
			}
			if previous != nil && parent.line < previous.line { // not in the order of the file
				return contexts, p.missingContextError(i, k)
			}
			parent.context, contexts.parent = k, parent
		}
	}
	return contexts, nil
}

// note adds a note, unless it is already there.
func (p *placer) note(note string) {
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
}

// findParent finds an "@@" line above the cursor. Of its first places in the file, it takes the last. It
// returns nil if there is none.
func (p *placer) findParent(context string) *parentContext {
	fit, looser := p.find([]string{context}, 0)
	if len(fit) == 0 {
		return nil
	}
	return &parentContext{line: firstLineOf(fit[len(fit)-1]), isUnique: len(fit)+len(looser) == 1}
}

// findBareContext moves the cursor below the first "@@" line of a hunk in a bare diff, unless that line
// is above the cursor. named reports whether the line exists, others its further places.
func (p *placer) findBareContext(context string) (others []find.Place, named bool) {
	fit, _ := p.find([]string{context}, 0)
	if len(fit) > 0 && firstLineOf(fit[0]) >= p.cursor {
		p.cursor, others = firstLineOf(fit[0])+1, fit[1:]
	}
	return others, len(fit) > 0
}

// additionLine returns the line at which a hunk without old lines inserts: below its "@@" lines, or
// at the end of the file. A bare hunk for the end of the file also moves the cursor there.
func (p *placer) additionLine(h *Hunk) int {
	end := p.text.lines()
	switch {
	case p.section.isBare && h.EndOfFile:
		p.cursor = end
	case p.section.isBare || (len(h.Context) > 0 && !h.EndOfFile):
		return p.cursor
	}
	return end
}

// findOldLines finds the old lines of a hunk. Lines for the end of the file may be elsewhere only in a
// bare diff, and then findOldLines adds a note. It fails for them in an envelope.
func (p *placer) findOldLines(h *Hunk, contexts contextResult, lines []Line) (found location, ok bool) {
	old := OldLines(lines)
	found = location{placement: placement{p.cursor, lines}, isIdentified: contexts.found}
	if len(old) == 0 {
		return found, true
	}
	if h.EndOfFile {
		end := p.text.lines() - len(old)
		if p.section.isBare && p.text.line(p.text.lines()-1) == "" && old[len(old)-1] != "" {
			end-- // the last line is the empty one after the final line ending
		}
		fit, _ := p.find(old, max(end, 0))
		if len(fit) > 0 && end >= p.cursor {
			found.at, found.tolerance, found.isCertain = firstLineOf(fit[0]), fit[0].Tolerance, true
			return found, true
		}
		if !p.section.isBare {
			return found, false
		}
	}
	fit, looser := p.find(old, p.cursor)
	if len(fit) == 0 {
		return found, false
	}
	if contexts.number > 0 && len(fit) > 1 {
		fit, found.isIdentified = p.nearestFirst(old, fit, contexts.number-1), true
	}
	if h.EndOfFile {
		p.note(fmt.Sprintf("the lines of a hunk with %q are at line %d, which is not the end of the file.", endOfFileMarker, firstLineOf(fit[0])+1))
	}
	found.isCertain = firstLineOf(fit[0]) == contexts.number-1
	found.at, found.tolerance, found.others, found.looser = firstLineOf(fit[0]), fit[0].Tolerance, fit[1:], looser
	return found, true
}

// nearestFirst returns the places with the one nearest to a line number first. If firstPlaces has as many as a
// search returns, it searches on, so that it finds the nearest of all.
func (p *placer) nearestFirst(old []string, firstPlaces []find.Place, number int) []find.Place {
	tolerance, all := firstPlaces[0].Tolerance, firstPlaces
	nearest, _ := p.findWith(old, max(number, p.cursor), tolerance)
	if len(nearest) == 0 || firstLineOf(nearest[0]) != number {
		for more := firstPlaces; len(more) == find.MaxPlaces; {
			more, _ = p.findWith(old, firstLineOf(more[find.MaxPlaces-1])+1, tolerance)
			all = append(all, more...)
		}
		nearest = []find.Place{slices.MinFunc(all, func(a, b find.Place) int { return distance(firstLineOf(a), number) - distance(firstLineOf(b), number) })}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(other find.Place) bool { return other == nearest[0] })
	return append(nearest[:1:1], all[:min(len(all), find.MaxPlaces-1)]...)
}

// checkAmbiguity looks for hunks that fit several places between the previous hunk and the last possible
// place of the next hunk. It returns an error for such a hunk without an "@@" line. For others it
// adds a note. It goes from the last hunk to the first.
func (p *placer) checkAmbiguity(spots []location) error {
	below := p.text.lines() // the last line at which the hunk below can start
	var descriptions []string
	for i, s := range slices.Backward(spots) {
		size := len(OldLines(s.lines))
		own := s.at
		if size == 0 { // it only adds lines, below the line that an "@@" line names
			own--
		}
		if size == 0 && len(s.others)+len(s.looser) == 0 {
			continue
		}
		isElsewhere := func(place find.Place) bool {
			at := firstLineOf(place)
			return at != own && at+size <= below
		}
		others := selectPlaces(s.others, isElsewhere)
		looser := selectPlaces(s.looser, isElsewhere)
		if len(others) > 0 && !s.isIdentified {
			return p.ambiguousError(i, fmt.Sprintf(`its lines are at line %d and %s: name a line above those that are meant, "@@ " and the whole line`, s.at+1, lineList(others)))
		}
		switch {
		case len(others) > 0:
			descriptions = append(descriptions, fmt.Sprintf("line %d (%s fits too)", own+1, lineList(others)))
		case len(looser) > 0:
			descriptions = append(descriptions, fmt.Sprintf("line %d (%s fits too, with %s)", own+1, lineList(looser), looser[0].Tolerance))
		case len(s.abovePrevious) > 0:
			descriptions = append(descriptions, fmt.Sprintf("line %d (%s fits too, above the hunk before)", own+1, lineList(s.abovePrevious)))
		}
		isComplete := len(s.others) < find.MaxPlaces-1 && len(s.looser) < find.MaxPlaces // the search found all places
		switch {
		case s.isCertain:
			below = s.at
		case isComplete:
			below = max(own, lastStart(others), lastStart(looser))
		default:
			below -= size
		}
	}
	slices.Reverse(descriptions)
	p.ambiguousPlaces = descriptions
	return nil
}

// selectPlaces returns the places for which isWanted returns true.
func selectPlaces(places []find.Place, isWanted func(find.Place) bool) (selected []find.Place) {
	for _, place := range places {
		if isWanted(place) {
			selected = append(selected, place)
		}
	}
	return selected
}

// lastStart returns the largest first line of places, counted from 0, or -1 without any.
func lastStart(places []find.Place) int {
	last := -1
	for _, place := range places {
		last = max(last, firstLineOf(place))
	}
	return last
}

// lineList formats the line numbers of places.
func lineList(places []find.Place) string {
	var texts []string
	for _, at := range places {
		texts = append(texts, fmt.Sprintf("line %d", at.FirstLine))
	}
	return clip.List(texts, find.MaxPlaces-2)
}

// maxListedHunks is the largest number of hunks listed in a note.
const maxListedHunks = 40

// allNotes returns the notes about ambiguous and loosely matched hunks, then all others.
func (p *placer) allNotes() (notes []string) {
	if len(p.ambiguousPlaces) > 0 {
		notes = append(notes, fmt.Sprintf("a hunk was applied where others may be meant: %s. Make sure that the place is right.", clip.Some(p.ambiguousPlaces, maxListedHunks)))
	}
	for _, way := range slices.Sorted(maps.Keys(p.looseLines)) {
		notes = append(notes, fmt.Sprintf("a hunk fits %s only with %s; what it adds stands as the patch has it, so look at that.", clip.Some(p.looseLines[way], maxListedHunks), way))
	}
	return append(notes, p.notes...)
}

// withoutLastEmpty returns the lines without an empty last old line, which the file does not have,
// and without an empty last new line. A kept line that is last on one side only becomes an
// insertion or a removal.
func withoutLastEmpty(lines []Line) []Line {
	lastOld, lastNew := lastLineExcept(lines, Insert), lastLineExcept(lines, Remove)
	if lastOld == lastNew {
		return slices.Delete(slices.Clone(lines), lastOld, lastOld+1)
	}
	shortened := make([]Line, 0, len(lines))
	for i, l := range lines {
		switch {
		case i == lastOld && l.Kind == Keep:
			l.Kind = Insert
		case i == lastNew && l.Kind == Keep && l.Text == "":
			l.Kind = Remove
		case i == lastOld, i == lastNew && l.Text == "":
			continue
		}
		shortened = append(shortened, l)
	}
	return shortened
}

// lastLineExcept returns the index of the last line whose kind is not kind, or -1.
func lastLineExcept(lines []Line, kind Kind) int {
	i := len(lines) - 1
	for i >= 0 && lines[i].Kind == kind {
		i--
	}
	return i
}

// noteLooseContext records a hunk that adds lines in loosely matched context: the added lines may
// have the same mistake as the context. Blanks at line ends do not count.
func (p *placer) noteLooseContext(s location) {
	adds := slices.ContainsFunc(s.lines, func(l Line) bool { return l.Kind == Insert && strings.TrimSpace(l.Text) != "" })
	if adds && s.tolerance > find.TrimmedTrailing {
		p.looseLines[s.tolerance] = append(p.looseLines[s.tolerance], fmt.Sprintf("line %d", s.at+1))
	}
}
