package editformat

import "strings"

const byteOrderMark = "\uFEFF"

// file is the text of a file as lines that may go and come without the others
// moving. Line 0 is none: it stands before the first and after the last.
type file struct {
	path   string
	exists bool
	mark   string // a byte order mark, or nothing
	ending string // of the first line that has one, else LF
	ended  bool   // the last line has an ending
	lines  []line
	there  int // lines that are not gone
	size   int // bytes of all lines, those that are gone too, and about one more each
	seeks  [passes]*index
}

type line struct {
	text, ending string
	prev, next   int32
	was          int32 // its number before all edits, from 1; 0 for one that came
	gone         bool
}

func newFile(path string, text *string) *file {
	f := &file{path: path, ending: "\n", ended: true, lines: make([]line, 1)}
	if text == nil {
		return f
	}
	f.exists, f.size = true, len(*text)+1
	rest, marked := strings.CutPrefix(*text, byteOrderMark)
	if marked {
		f.mark = byteOrderMark
	}
	f.lines = make([]line, 1, strings.Count(rest, "\n")+2)
	f.ended = rest == "" || strings.HasSuffix(rest, "\n")
	for n := int32(1); rest != ""; n++ {
		text, after, ended := strings.Cut(rest, "\n")
		l := line{text: text, was: n, prev: n - 1, next: n + 1}
		if bare, crlf := strings.CutSuffix(text, "\r"); ended {
			l.text, l.ending = bare, "\n"
			if crlf {
				l.ending = "\r\n"
			}
		}
		f.lines = append(f.lines, l)
		rest = after
	}
	f.there = len(f.lines) - 1
	f.lines[0].prev = int32(f.there)
	f.lines[f.there].next = 0
	if f.there > 0 {
		f.lines[0].next = 1
		if e := f.lines[1].ending; e != "" {
			f.ending = e
		}
	}
	return f
}

// text is the file as it is now.
func (f *file) text() string {
	var b strings.Builder
	b.Grow(f.size)
	b.WriteString(f.mark)
	for id := f.lines[0].next; id != 0; id = f.lines[id].next {
		l := &f.lines[id]
		b.WriteString(l.text)
		switch {
		case l.next == 0 && !f.ended:
		case l.ending == "":
			b.WriteString(f.ending)
		default:
			b.WriteString(l.ending)
		}
	}
	return b.String()
}

// texts are the lines as they are now.
func (f *file) texts() []string {
	texts := make([]string, 0, f.there)
	for id := f.lines[0].next; id != 0; id = f.lines[id].next {
		texts = append(texts, f.lines[id].text)
	}
	return texts
}

// insert puts a line above another one.
func (f *file) insert(before int32, text, ending string) {
	id, prev := int32(len(f.lines)), f.lines[before].prev
	f.lines = append(f.lines, line{text: text, ending: ending, prev: prev, next: before})
	f.lines[prev].next, f.lines[before].prev = id, id
	f.there++
	f.size += len(text) + 1
	for p, ix := range f.seeks {
		if ix != nil {
			ix.add(id, pass(p).normal(text))
		}
	}
}

// delete takes a line away and returns the one that stood below it.
func (f *file) delete(id int32) int32 {
	l := &f.lines[id]
	l.gone = true
	f.lines[l.prev].next, f.lines[l.next].prev = l.next, l.prev
	f.there--
	for _, ix := range f.seeks {
		if ix != nil {
			ix.remove(id)
		}
	}
	return l.next
}
