package v4a

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// placement is a hunk at its place in a text.
type placement struct {
	at    int    // the first line that it touches, or stands before
	lines []Line // what to do from there on
}

// place finds where the hunks of a section belong in a text, sorted by place, and
// what is to be said of hunks that were placed. An error is a [*MatchError] or
// that of ctx.
func place(ctx context.Context, t *text, s *Section) ([]placement, []string, error) {
	pl := newPlacer(newFinder(ctx, t), s)
	placed := make([]placement, 0, len(s.Hunks))
	starts := make([]int, 0, len(s.Hunks))
	var notes []string
	for i := range s.Hunks {
		p, err := pl.place(i)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return nil, nil, err
		}
		if note := p.loose(t); note != "" {
			notes = append(notes, note)
		}
		starts = append(starts, p.at)
		placed = p.appendTo(placed, t.lines())
	}
	slices.SortStableFunc(placed, func(a, b placement) int { return a.at - b.at })
	notes = append(notes, pl.notes...)
	return placed, append(notes, pl.ambiguous(starts)...), nil
}

// appendTo splits what a hunk adds below the last line of the file from the rest
// of it. Hunks that add there do so in the order of the patch, wherever they
// start.
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
	*finder
	section *Section
	sought  []sought
	cursor  int      // the next hunk starts here or below
	notes   []string // of "@@" lines that are none of those which the format has
	// The hunk that is placed has line numbers after "@@", which were read over.
	numbered bool
}

// sought is what is looked for to place a hunk.
type sought struct {
	contexts []*needle
	old      *needle
	shorter  *needle // old without an empty last line, in an envelope, or nil
}

func newPlacer(f *finder, s *Section) *placer {
	p := &placer{finder: f, section: s, sought: make([]sought, len(s.Hunks))}
	for i := range s.Hunks {
		p.sought[i] = p.seeking(&s.Hunks[i])
	}
	return p
}

func (p *placer) seeking(h *Hunk) sought {
	var s sought
	for _, c := range h.Context {
		s.contexts = append(s.contexts, p.needle([]string{p.unmarked(c)}))
	}
	old := oldLines(h.Lines)
	if len(old) > 0 {
		old[0] = p.unmarked(old[0])
	}
	s.old = p.needle(old)
	if last := len(old) - 1; last >= 0 && old[last] == "" && !p.section.bare {
		s.shorter = p.needle(old[:last])
	}
	return s
}

// unmarked is a line of the patch as the first line of the file has it, whose
// byte order mark belongs to no line.
func (p *placer) unmarked(line string) string {
	if p.text.marked {
		return strings.TrimPrefix(line, byteOrderMark)
	}
	return line
}

func (p *placer) needle(lines []string) *needle {
	n := &needle{lines: lines}
	p.needles = append(p.needles, n)
	return n
}

func (p *placer) place(i int) (placement, error) {
	h, s := &p.section.Hunks[i], &p.sought[i]
	parent, err := p.narrow(i)
	if err != nil {
		return placement{}, err
	}
	if parent != nil && p.hides(parent, s.old) {
		return placement{}, p.missingContext(i, parent.context)
	}
	if len(s.old.lines) == 0 {
		return placement{at: p.additionLine(h), lines: h.Lines}, nil
	}
	if at, ok := p.locate(h, s.old); ok {
		if p.numbered && !h.EndOfFile && p.last(s.old) > at {
			return placement{}, p.unclear(i, at)
		}
		p.cursor = at + len(s.old.lines)
		return placement{at: at, lines: h.Lines}, nil
	}
	if s.shorter != nil {
		if at, ok := p.locate(h, s.shorter); ok && (parent == nil || !p.hides(parent, s.shorter)) {
			p.cursor = at + len(s.shorter.lines)
			return placement{at: at, lines: withoutLastEmpty(h.Lines)}, nil
		}
	}
	return placement{}, p.mismatch(i)
}

// parent is an "@@" line that stands above the cursor.
type parent struct{ context, line int }

// narrow moves the cursor below the hunk's "@@" lines. One that has line numbers, as
// in other formats, is read over. One that stands above the cursor, and nowhere
// else, names what the hunk is in: it is returned, and what it says is true as long
// as what is looked for next is not between the two.
func (p *placer) narrow(i int) (in *parent, err error) {
	p.numbered = false
	for k, n := range p.sought[i].contexts {
		if p.section.bare {
			p.narrowBare(n, k > 0)
			continue
		}
		at, ok := p.seek(n, p.cursor)
		switch {
		case ok && in != nil && p.hides(in, n):
			return nil, p.missingContext(i, in.context)
		case ok:
			p.cursor, in, p.numbered = at+1, nil, false
		case p.isNumbered(i, k):
			p.numbered = true
			p.note(`line numbers after "@@" were read over; the lines of a hunk alone say where it is.`)
		default:
			line, above := p.above(n)
			if !above || in != nil && line < in.line {
				return nil, p.missingContext(i, k)
			}
			in = &parent{k, line}
			p.note(fmt.Sprintf(`an "@@" line names line %d, above the hunk before it; the hunk was looked for further below.`, line+1))
		}
	}
	return in, nil
}

// note tells of something once.
func (p *placer) note(note string) {
	if len(p.notes) < fewHunks && !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
}

// isNumbered reports whether an "@@" line has line numbers that nothing hangs on.
func (p *placer) isNumbered(i, k int) bool {
	return lineNumbers.MatchString(p.section.Hunks[i].Context[k]) && (len(p.sought[i].old.lines) > 0 || p.text.lines() == 0)
}

// above finds an "@@" line which stands in one place only, above the cursor.
func (p *placer) above(n *needle) (line int, ok bool) {
	p.index(folded)
	span := n.spans[folded]
	return span.first, span.first >= 0 && span.first == span.last && span.first < p.cursor
}

// last is where lines stand last, however loosely they are compared.
func (p *placer) last(n *needle) int {
	p.index(folded)
	return n.spans[folded].last
}

// hides reports whether lines stand between a parent and the cursor, where they may
// be meant as well as below. Lines that are none are there.
func (p *placer) hides(in *parent, n *needle) bool {
	at, ok := p.seek(n, in.line+1)
	return ok && at < p.cursor
}

// narrowBare moves the cursor below an anchor unless the anchor is nowhere or, being
// the first one of a hunk, already above the cursor.
func (p *placer) narrowBare(n *needle, stacked bool) {
	for _, pass := range [...]pass{exact, ends} {
		p.index(pass)
		switch span := n.spans[pass]; {
		case span.first >= p.cursor:
			p.cursor = span.first + 1
			return
		case stacked && span.last >= p.cursor:
			if at, ok := p.scan(n, pass, p.cursor); ok {
				p.cursor = at + 1
			}
			return
		}
	}
}

// additionLine says where a hunk without old lines adds its own. In a bare diff
// nothing comes after what is added at the end.
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

// locate finds the old lines of a hunk. Those that end the file are there or,
// in an envelope, nowhere.
func (p *placer) locate(h *Hunk, n *needle) (int, bool) {
	if len(n.lines) > 0 && h.EndOfFile {
		end := p.text.lines() - len(n.lines)
		if end >= p.cursor && p.at(n, end) {
			return end, true
		}
		if !p.section.bare {
			return 0, false
		}
	}
	return p.seek(n, p.cursor)
}

// withoutLastEmpty takes the last old line, an empty one that the file does not
// have, out of a hunk, and the last new line as well when that is empty. A line
// that was both old and new goes; one that stays on one side only changes kind.
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

// lastLine returns the index of the last line that is not of a kind, or -1.
func lastLine(lines []Line, not Kind) int {
	i := len(lines) - 1
	for i >= 0 && lines[i].Kind == not {
		i--
	}
	return i
}

// loose tells of a hunk that adds lines where the lines around them fit only
// with something left aside, since what is added may lack it as well. Blanks at
// the ends of lines are of no account.
func (p placement) loose(t *text) string {
	if !p.addsWords() {
		return ""
	}
	at := p.at
	for _, l := range p.lines {
		if l.Kind == Insert {
			continue
		}
		if aside := leftAside(t.line(at), l.Text); aside != "" {
			return fmt.Sprintf("a hunk fits line %d only with %s left aside; what it adds stands as the patch has it, so look at that.", at+1, aside)
		}
		at++
	}
	return ""
}

func (p placement) addsWords() bool {
	return slices.ContainsFunc(p.lines, func(l Line) bool { return l.Kind == Insert && strings.TrimSpace(l.Text) != "" })
}

// leftAside is in what a line of the file and one of the patch differ that count
// as equal.
func leftAside(file, patch string) string {
	file = strings.TrimRightFunc(strings.TrimPrefix(file, byteOrderMark), unicode.IsSpace)
	patch = strings.TrimRightFunc(strings.TrimPrefix(patch, byteOrderMark), unicode.IsSpace)
	switch {
	case file == patch:
		return ""
	case strings.TrimSpace(file) == strings.TrimSpace(patch):
		return "indentation"
	}
	return "the kind of its dashes, quotes or spaces"
}

// fewHunks is in how many hunks of a section each is looked for a second time:
// that costs the rest of the file for each.
const fewHunks = 8

// ambiguous tells of hunks which start at those lines and fit further below too,
// where no other hunk belongs, while no "@@" line says which place is meant.
func (p *placer) ambiguous(starts []int) []string {
	if len(starts) > fewHunks {
		return nil
	}
	var notes []string
	for i, at := range starts {
		h, old := &p.section.Hunks[i], p.sought[i].old
		if len(h.Context) > 0 || h.EndOfFile || len(old.lines) == 0 {
			continue
		}
		if again, ok := p.scan(old, exact, at+1); ok && !slices.Contains(starts, again) {
			notes = append(notes, fmt.Sprintf(`a hunk without an "@@" line of its own fits line %d and line %d; the first was changed.`, at+1, again+1))
		}
	}
	return notes
}
