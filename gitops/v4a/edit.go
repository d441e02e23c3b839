package v4a

import (
	"slices"
	"strings"
)

// applyHunks applies placed hunks, which are sorted and disjoint. Every new line is terminated. In a
// bare diff the last line stays unterminated, like the old text's, whose end counts as an empty
// line.
func applyHunks(t *text, placed []placement, bare bool) string {
	e := &editor{text: t}
	for i := range placed {
		e.fitMark(&placed[i])
	}
	e.new.Grow(len(t.data))
	for _, p := range placed {
		e.apply(p)
	}
	e.new.WriteString(t.data[e.at:])
	text := e.new.String()
	if bare && (e.lastRemoved || e.lastTerminated) { // what is the last line now had one below it
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	return text
}

// editor writes the new text from the top to the bottom.
type editor struct {
	text *text
	new  strings.Builder
	at   int // the text before this is written

	lastRemoved    bool // the last line is removed
	lastTerminated bool // the last line got an ending that it did not have
}

// apply writes the text up to a hunk, and the hunk's added lines. An added line gets the line ending of the
// removed line that it replaces, else the file's usual one.
func (e *editor) apply(p placement) {
	at := p.at
	var gone []string // endings of the lines that the change at hand removes
	for i, l := range p.lines {
		if l.Kind != Keep && (i == 0 || p.lines[i-1].Kind == Keep) {
			gone = e.text.endings(at, removed(p.lines[i:]))
		}
		switch l.Kind {
		case Keep:
			at++
		case Remove:
			e.copy(int(e.text.starts[at]))
			at++
			e.at = int(e.text.starts[at])
			e.lastRemoved = at == e.text.lines()
		case Insert:
			e.copy(int(e.text.starts[at]))
			if at == e.text.lines() {
				e.endLastLine()
			}
			ending := e.text.ending
			if len(gone) > 0 {
				ending = gone[0]
			}
			if len(gone) > 1 {
				gone = gone[1:] // lines beyond those that are removed end as the last of them
			}
			e.new.WriteString(l.Text + ending)
		}
	}
}

// copy writes the text up to a byte.
func (e *editor) copy(to int) {
	if to > e.at {
		e.new.WriteString(e.text.data[e.at:to])
		e.at = to
	}
}

// removed counts the removed lines at the beginning of a hunk.
func removed(lines []Line) (n int) {
	for _, l := range lines {
		switch l.Kind {
		case Keep:
			return n
		case Remove:
			n++
		}
	}
	return n
}

// fitMark decides about a byte order mark: the file's stays, unless a removed first line spells it
// out and no added first line repeats it.
func (e *editor) fitMark(p *placement) {
	if !e.text.hasByteOrderMark || p.at != 0 {
		return
	}
	removed, added := false, false
	p.lines = slices.Clone(p.lines)
	for i, l := range p.lines {
		bare, spelled := strings.CutPrefix(l.Text, byteOrderMark)
		if !spelled {
			continue
		}
		removed = removed || l.Kind == Remove
		added = added || l.Kind == Insert
		p.lines[i].Text = bare
	}
	if removed && !added {
		e.at = len(byteOrderMark)
	}
}

// endLastLine terminates an existing last line.
func (e *editor) endLastLine() {
	last := e.text.lines() - 1
	if last < 0 || e.lastRemoved || e.lastTerminated || e.text.terminated(last) {
		return
	}
	e.new.WriteString(e.text.ending)
	e.lastTerminated = true
}
