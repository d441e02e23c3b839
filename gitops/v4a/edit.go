package v4a

import (
	"slices"
	"strings"
)

type edit struct {
	from, to int
	text     string
}

// edits turns placed hunks into edits, in order and apart. Every line that comes is
// terminated; in a bare diff the last line is not, as in the text before, whose end
// counts as an empty line.
func edits(t *text, placed []placement, bare bool) []edit {
	e := &editor{text: t}
	for _, p := range placed {
		e.apply(p)
	}
	if bare {
		e.dropLastEnding()
	}
	e.close()
	return e.done
}

// editor collects edits from left to right. The last one stays open, so that
// what touches it is joined to it.
type editor struct {
	text     *text
	done     []edit
	opened   bool
	from, to int
	new      strings.Builder

	ending    string // the last one that was added
	lastGone  bool   // the last line is removed
	lastEnded bool   // the last line got an ending that it did not have
}

func (e *editor) apply(p placement) {
	at := p.at
	lines := e.fitMark(p)
	var gone []string // endings of the lines that the change at hand removes
	for i, l := range lines {
		if l.Kind != Keep && (i == 0 || lines[i-1].Kind == Keep) {
			gone = e.text.endings(at, removed(lines[i:]))
		}
		switch l.Kind {
		case Keep:
			at++
		case Remove:
			e.replace(int(e.text.starts[at]), int(e.text.starts[at+1]), "", "")
			at++
			e.lastGone = at == e.text.lines()
		case Insert:
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
			e.replace(int(e.text.starts[at]), int(e.text.starts[at]), l.Text, ending)
		}
	}
}

// removed returns how many lines the change removes with which the lines of a hunk begin.
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

// fitMark settles who brings a byte order mark, the file or the patch: a
// removed first line that spells it out takes it away, unless a line that is
// added there spells it too.
func (e *editor) fitMark(p placement) []Line {
	if !e.text.marked || p.at != 0 {
		return p.lines
	}
	removed, added := false, false
	lines := slices.Clone(p.lines)
	for i, l := range lines {
		bare, spelled := strings.CutPrefix(l.Text, byteOrderMark)
		if !spelled {
			continue
		}
		removed = removed || l.Kind == Remove
		added = added || l.Kind == Insert
		lines[i].Text = bare
	}
	if removed && !added {
		e.replace(0, len(byteOrderMark), "", "")
	}
	return lines
}

// replace adds an edit that lies to the right of all others or touches the
// last one.
func (e *editor) replace(from, to int, text, ending string) {
	if !e.opened || e.to != from {
		e.close()
		e.opened, e.from = true, from
	}
	e.to = to
	e.new.WriteString(text)
	e.new.WriteString(ending)
	if ending != "" {
		e.ending = ending
	}
}

func (e *editor) close() {
	if e.opened {
		e.done = append(e.done, edit{e.from, e.to, e.new.String()})
		e.new = strings.Builder{}
		e.opened = false
	}
}

// endLastLine terminates the last line if it is still there and is not.
func (e *editor) endLastLine() {
	last := e.text.lines() - 1
	if last < 0 || e.lastGone || e.lastEnded || e.text.terminated(last) {
		return
	}
	end := len(e.text.data)
	e.replace(end, end, "", e.text.ending)
	e.lastEnded = true
}

// dropLastEnding takes the ending of the last line away where an edit has made
// a terminated line the last one.
func (e *editor) dropLastEnding() {
	if !e.lastGone && !e.lastEnded {
		return
	}
	if e.new.Len() > 0 {
		text := strings.TrimSuffix(e.new.String(), e.ending)
		e.new = strings.Builder{}
		e.new.WriteString(text)
		return
	}
	if i, ok := slices.BinarySearch(e.text.starts, int32(e.from)); ok && i > 0 {
		e.from = e.text.textEnd(i - 1)
	}
}
