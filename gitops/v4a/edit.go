package v4a

import (
	"slices"
	"strings"
)

// applyHunks returns the text after placed hunks, which are sorted and do not overlap. Every added
// line gets a line ending. A bare diff sees the text as split at line endings. So the last line of
// the result has no ending, and a text with a final line ending has an empty last line.
func applyHunks(t *text, placed []placement, bare bool) string {
	e := &editor{text: t}
	size := len(t.data)
	for i := range placed {
		e.fitByteOrderMark(&placed[i])
		size += addedBytes(placed[i].lines)
	}
	e.new.Grow(max(size, 0))
	for _, p := range placed {
		e.applyHunk(p)
	}
	e.new.WriteString(t.data[e.copiedTo:])
	text := e.new.String()
	if bare && (e.lastRemoved || e.lastTerminated) { // the line below the current last line was removed, or the last line got an ending
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	return text
}

// addedBytes returns how many bytes a hunk adds to a text, if its added lines end in CRLF and its removed ones in LF.
func addedBytes(lines []Line) (bytes int) {
	for _, l := range lines {
		switch l.Kind {
		case Insert:
			bytes += len(l.Text) + len("\r\n")
		case Remove:
			bytes -= len(l.Text) + len("\n")
		}
	}
	return bytes
}

// editor builds the new text from top to bottom.
type editor struct {
	text     *text
	new      strings.Builder
	copiedTo int // the old text before this byte is copied or replaced

	lastRemoved    bool // the last line was removed
	lastTerminated bool // the last line had no ending and got one
}

// applyHunk copies the text up to a hunk and writes the hunk's added lines. An added line gets the line
// ending of the removed line that it replaces, or else the file's usual ending.
func (e *editor) applyHunk(p placement) {
	at := p.at
	var endings []string // endings of the lines that the current change removes
	for i, l := range p.lines {
		if l.Kind != Keep && (i == 0 || p.lines[i-1].Kind == Keep) {
			endings = e.text.endings(at, countLeadingRemoved(p.lines[i:]))
		}
		switch l.Kind {
		case Keep:
			at++
		case Remove:
			e.copyTo(int(e.text.starts[at]))
			at++
			e.copiedTo = int(e.text.starts[at])
			e.lastRemoved = at == e.text.lines()
		case Insert:
			e.copyTo(int(e.text.starts[at]))
			if at == e.text.lines() {
				e.endLastLine()
			}
			ending := e.text.ending
			if len(endings) > 0 {
				ending = endings[0]
			}
			if len(endings) > 1 {
				endings = endings[1:] // if more lines are added than removed, the rest get the last of these endings
			}
			e.new.WriteString(l.Text + ending)
		}
	}
}

// copyTo copies the old text up to a byte.
func (e *editor) copyTo(to int) {
	if to > e.copiedTo {
		e.new.WriteString(e.text.data[e.copiedTo:to])
		e.copiedTo = to
	}
}

// countLeadingRemoved counts the removed lines before the first kept one.
func countLeadingRemoved(lines []Line) (n int) {
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

// fitByteOrderMark decides whether the file keeps its byte order mark. It does, unless a removed first line
// contains the mark and no added first line does.
func (e *editor) fitByteOrderMark(p *placement) {
	if !e.text.hasByteOrderMark || p.at != 0 {
		return
	}
	removed, added := false, false
	p.lines = slices.Clone(p.lines)
	for i, l := range p.lines {
		bare, hasMark := strings.CutPrefix(l.Text, byteOrderMark)
		if !hasMark {
			continue
		}
		removed = removed || l.Kind == Remove
		added = added || l.Kind == Insert
		p.lines[i].Text = bare
	}
	if removed && !added {
		e.copiedTo = len(byteOrderMark)
	}
}

// endLastLine adds a line ending to a last line without one, because a line is added below it.
func (e *editor) endLastLine() {
	last := e.text.lines() - 1
	if last < 0 || e.lastRemoved || e.lastTerminated || e.text.hasEnding(last) {
		return
	}
	e.new.WriteString(e.text.ending)
	e.lastTerminated = true
}
